"""A batch's work on the GPU as one CUDA graph: forward, backward, and where a step ends, the optimizer."""

from typing import Any

import zoo
from zoo.ops import cuda
from zoo.train.recipe import WITH_CLOSURE

WARMUP = 3  # the first steps are watched by Lint, whose hooks look at values


class GraphedBatch:
    """Computes batches of equal shapes by replays, with the numbers of the plain loop.

    What changes between steps on the host stays outside: the pictures' augmentation, the schedule, the average.

    Args:
        task, run: whose batches.
    """

    def __init__(self, task: Any, run: Any):
        self.task, self.run = task, run
        self.replay = zoo.cuda.graph(self.compute, warmup=WARMUP)

    def compute(self, images: Any, targets: Any, labels: Any, first: bool, last: bool, share: float) -> tuple:
        """(loss, hits) as tensors. first, last: of the batches of a step; share: of the step's loss."""
        run = self.run
        if first:
            run.optimizer.zero_grad()
        with run.autocast():
            logits = run.model(images)
            loss = self.task.loss(logits, targets)
        run.scaler.scale(loss if share == 1 else loss * share).backward()
        if last:
            if cuda.is_current_stream_capturing():  # a loss that is no number ends the run with the weights before it
                run.optimizer.found_inf = loss.detach().isfinite().logical_not().array
            run.update()
            run.optimizer.found_inf = None
        return loss, (logits.detach().argmax(1) == labels).sum()

    def __call__(self, images: Any, targets: Any, labels: Any) -> tuple[Any, Any]:
        run = self.run
        return self.replay(images, targets, labels, run.first_of_step, run.last_of_step, run.share)


def graphed(task: Any, run: Any) -> GraphedBatch | None:
    """What --graph asks for: None without a GPU, or with an optimizer that computes on the host."""
    config = run.config
    if config.graph == "off" or not config.device.startswith("cuda"):
        return None
    return None if config.optimizer in WITH_CLOSURE or not run.optimizer.capturable else GraphedBatch(task, run)
