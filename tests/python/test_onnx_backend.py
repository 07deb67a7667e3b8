"""ONNX's backend tests: none may be wrong, and the floors of how many pass may only rise."""
import onnx_backend
import pytest

# Tests whose expected data are not what the project follows.
DIFFERENT = {
    "test_dft_inverse": "zeros where the data have the rounding noise of a float32 transform",
    "test_dft_inverse_opset19": "zeros where the data have the rounding noise of a float32 transform",
    "test_resize_downsample_scales_cubic_align_corners": "onnxruntime's coordinates: from the rounded extent",
    "test_resize_downsample_scales_linear_align_corners": "onnxruntime's coordinates: from the rounded extent",
}
# Least share that passes: tests of operators that the vendor's converter accepts (sdk.md C.2), and all the others.
VENDOR_FLOOR = 0.99
OTHER_FLOOR = 0.97


@pytest.fixture(scope="session")
def outcomes():
    if not onnx_backend.DRIVER.is_file():
        pytest.fail(f"{onnx_backend.DRIVER} is not there: build the target openrknn_onnx_nodes (tools/test.sh does)")
    return onnx_backend.run()


def test_nothing_is_wrong_and_nothing_crashes(outcomes):
    bad = [o for o in outcomes if o.result not in ("pass", "refused") and o.name not in DIFFERENT]
    assert not bad, "\n".join(f"{o.name}: {o.result}: {o.detail}" for o in bad)


def test_refusals_say_why(outcomes):
    assert not [o.name for o in outcomes if o.result == "refused" and not o.detail.strip()]


@pytest.mark.parametrize("vendor, floor", [(True, VENDOR_FLOOR), (False, OTHER_FLOOR)], ids=["vendor", "other"])
def test_share_that_passes(outcomes, vendor, floor):
    counted = [o for o in outcomes if not o.foreign and vendor == onnx_backend.VENDOR_OPERATORS.issuperset(o.operators)]
    failing = sorted({op for o in counted if o.result != "pass" for op in o.operators})
    assert counted
    assert onnx_backend.share(counted) >= floor, f"{onnx_backend.passed(counted)} of {len(counted)}; among {failing}"
