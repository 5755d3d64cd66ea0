"""python -m zoo.train: the main job."""
