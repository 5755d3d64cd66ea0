"""zoo.cuda's questions about a GPU, devices as torch's functions take them, zoo.version, switches of zoo.backends."""
import pytest

import zoo
from zoo.ops.cuda.driver import index

DEVICES = [None, 0, "cuda", "cuda:0", zoo.device("cuda"), zoo.device("cuda", 0)]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_device_may_be_named_in_every_way(device):
    assert index(device) == 0


def test_no_gpu_is_no_device_of_cuda():
    with pytest.raises(ValueError, match="wants a cuda device, got cpu"):
        index("cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_functions_take_every_name_of_a_device(device):
    cuda = zoo.cuda
    cuda.synchronize(device)
    if device is not None:
        cuda.set_device(device)
    with cuda.device(device):
        assert cuda.current_device() == 0
    assert cuda.current_stream(device).device == cuda.Stream(device).device == cuda.default_stream(device).device == 0
    before = cuda.memory_allocated(device)
    x = zoo.ones(1 << 20, device="cuda")
    assert cuda.memory_allocated(device) - before >= x.nbytes
    assert cuda.max_memory_allocated(device) >= x.nbytes and cuda.memory_reserved(device) >= x.nbytes
    cuda.reset_peak_memory_stats(device)
    free, total = cuda.mem_get_info(device)
    p = cuda.get_device_properties(device)
    assert 0 < free <= total == p.total_memory
    assert (p.major, p.minor) == cuda.get_device_capability(device) and p.name == cuda.get_device_name(device)
    assert p.warp_size == 32 and p.multi_processor_count > 0
    assert p.shared_memory_per_block <= p.shared_memory_per_block_optin <= p.shared_memory_per_multiprocessor
    assert cuda.is_bf16_supported() is (p.major >= 8)


@pytest.mark.cuda
def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError, match="device 99 does not exist"):
        zoo.cuda.get_device_properties(99)
    with pytest.raises(RuntimeError, match="device 99 does not exist"):
        zoo.cuda.set_device("cuda:99")


@pytest.mark.skipif(zoo.cuda.is_available(), reason="there is a GPU, or the interpreter")
def test_without_a_gpu():
    with pytest.raises(RuntimeError, match="no CUDA GPU"):
        zoo.cuda.get_device_properties()
    with pytest.raises(RuntimeError, match="no CUDA GPU"):
        zoo.cuda.init()
    assert not zoo.cuda.is_bf16_supported() and not zoo.cuda.is_initialized() and zoo.version.cuda is None
    assert zoo.cuda.get_rng_state_all() == []


def test_random_states_of_devices_are_the_one_there_is():
    state = zoo.cuda.get_rng_state()
    a = zoo.rand(3)
    zoo.cuda.set_rng_state(state, "cuda:0")
    assert zoo.equal(zoo.rand(3), a)
    zoo.cuda.set_rng_state_all([state])
    assert zoo.equal(zoo.rand(3), a)
    zoo.cuda.manual_seed_all(5)
    assert zoo.cuda.initial_seed() == 5 == zoo.initial_seed()


def test_version():
    assert zoo.version.__version__ == zoo.__version__ and zoo.version.hip is None


def test_switches_that_scripts_set():
    """They take what torch's scripts set, and say what is so."""
    b = zoo.backends
    precision = zoo.get_float32_matmul_precision()
    try:
        for matmul in (b.cuda.matmul, b.cudnn.conv):
            matmul.fp32_precision = "tf32"
            assert b.cuda.matmul.allow_tf32 and b.cudnn.allow_tf32 and matmul.fp32_precision == "tf32"
            matmul.fp32_precision = "ieee"
            assert not b.cuda.matmul.allow_tf32 and zoo.get_float32_matmul_precision() == "highest"
            with pytest.raises(RuntimeError, match="fp32_precision"):
                matmul.fp32_precision = "fp8"
        b.cudnn.allow_tf32 = True
        assert b.cuda.matmul.allow_tf32
    finally:
        zoo.set_float32_matmul_precision(precision)
    b.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    assert b.cuda.matmul.allow_bf16_reduced_precision_reduction is False
    before = b.cudnn.enabled, b.cudnn.benchmark
    with b.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
        assert (b.cudnn.enabled, b.cudnn.benchmark, b.cudnn.deterministic) == (True, True, False)
    assert (b.cudnn.enabled, b.cudnn.benchmark) == before
    assert not any(m.is_available() for m in (b.cudnn, b.mkl, b.mkldnn, b.openmp, b.mps, b.opt_einsum))
    for kind in ("flash", "mem_efficient", "math", "cudnn"):
        getattr(b.cuda, f"enable_{kind}_sdp")(False)
        assert getattr(b.cuda, f"{kind}_sdp_enabled")() is (kind == "flash")
    with zoo.nn.attention.sdpa_kernel([zoo.nn.attention.SDPBackend.MATH, zoo.nn.attention.SDPBackend.FLASH_ATTENTION]):
        q = zoo.rand(1, 2, 3, 4)
        assert zoo.nn.functional.scaled_dot_product_attention(q, q, q).shape == (1, 2, 3, 4)
