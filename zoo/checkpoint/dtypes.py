"""How safetensors and torch call the dtypes. bfloat16 and the 8-bit floats are those of ml_dtypes."""
import ml_dtypes
import numpy as np

from zoo.ops.dtypes import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

float8_e4m3fn, float8_e5m2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3fnuz, float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
FLOATS = frozenset({float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz,
                    float8_e8m0fnu})

# https://github.com/huggingface/safetensors: the dtypes of whole bytes
SAFETENSORS = {
    "F64": float64, "F32": float32, "F16": float16, "BF16": bfloat16, "C64": complex64, "BOOL": bool_,
    "I64": int64, "I32": int32, "I16": int16, "I8": int8, "U64": uint64, "U32": uint32, "U16": uint16, "U8": uint8,
    "F8_E4M3": float8_e4m3fn, "F8_E5M2": float8_e5m2, "F8_E8M0": float8_e8m0fnu,
    "F8_E4M3FNUZ": float8_e4m3fnuz, "F8_E5M2FNUZ": float8_e5m2fnuz,
}
SAFETENSORS_NAMES = {dtype: name for name, dtype in SAFETENSORS.items()}

# torch.<name>: the dtypes with a storage class of their own, and those that came after torch stopped making them
TORCH_STORAGES = {
    "DoubleStorage": float64, "FloatStorage": float32, "HalfStorage": float16, "BFloat16Storage": bfloat16,
    "LongStorage": int64, "IntStorage": int32, "ShortStorage": int16, "CharStorage": int8, "ByteStorage": uint8,
    "BoolStorage": bool_, "ComplexFloatStorage": complex64, "ComplexDoubleStorage": complex128,
}
TORCH_DTYPES = {
    "float64": float64, "float32": float32, "float16": float16, "bfloat16": bfloat16, "bool": bool_,
    "int64": int64, "int32": int32, "int16": int16, "int8": int8, "complex64": complex64, "complex128": complex128,
    "uint64": uint64, "uint32": uint32, "uint16": uint16, "uint8": uint8,
    "float8_e4m3fn": float8_e4m3fn, "float8_e5m2": float8_e5m2, "float8_e4m3fnuz": float8_e4m3fnuz,
    "float8_e5m2fnuz": float8_e5m2fnuz, "float8_e8m0fnu": float8_e8m0fnu,
}
TORCH_STORAGE_NAMES = {dtype: name for name, dtype in TORCH_STORAGES.items()}
TORCH_DTYPE_NAMES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


def native(array: np.ndarray) -> np.ndarray:
    """The array with its elements in this machine's byte order, as both tables have them."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
