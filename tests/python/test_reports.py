"""Everything that is in the way of a model is said at once, by preflight and by build."""
import onnx
import pytest
from onnx import TensorProto, helper

VALUE = helper.make_tensor_value_info


def troubled():
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["go_on"]),
                              helper.make_node("Relu", ["s"], ["next"])], "body",
                             [VALUE("i", TensorProto.INT64, []), VALUE("go", TensorProto.BOOL, []), VALUE("s", TensorProto.FLOAT, [1, 4])],
                             [VALUE("go_on", TensorProto.BOOL, []), VALUE("next", TensorProto.FLOAT, [1, 4])])
    nodes = [helper.make_node("Wobble", ["x"], ["a"], name="unknown_operator"),
             helper.make_node("Conv", ["image", "w"], ["b"], name="bad_attribute", strides=[0, 1]),
             helper.make_node("Add", ["x", "n"], ["c"], name="bad_types"),
             helper.make_node("Fancy", ["x"], ["d"], name="unknown_domain", domain="com.example"),
             helper.make_node("Loop", ["n", "", "x"], ["e"], name="endless", body=body),
             helper.make_node("If", ["flag"], ["f"], name="choice",
                              then_branch=helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "then", [], [VALUE("t", 1, [1, 4])]),
                              else_branch=helper.make_graph([helper.make_node("Abs", ["x"], ["t"])], "else", [], [VALUE("t", 1, [1, 4])]))]
    inputs = [VALUE("x", TensorProto.FLOAT, [1, 4]), VALUE("image", TensorProto.FLOAT, [1, 1, 4, 4]), VALUE("n", TensorProto.INT64, []),
              VALUE("flag", TensorProto.BOOL, []), VALUE("later", TensorProto.FLOAT, ["length", 4])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "abcdef"] + [VALUE("later", TensorProto.FLOAT, ["length", 4])]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 1, 1], [1.0])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    return helper.make_model(helper.make_graph(nodes, "troubled", inputs, outputs, weights), opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("command", ["preflight", "build"])
def test_all_reasons_at_once(command, openrknn, tmp_path):
    path = tmp_path / "troubled.onnx"
    onnx.save(troubled(), path)
    arguments = ["-o", tmp_path / "out.rknn", "--dtype", "fp16"] if command == "build" else []
    done = openrknn(command, path, "--target", "rk3588", *arguments, check=False)
    assert done.returncode == 1 and not (tmp_path / "out.rknn").exists()
    text = done.stderr
    assert "1 input and 6 nodes cannot be imported" in text, text
    for node, reason in {"'later'": "--input later:", "'unknown_operator' (Wobble)": "not supported", "'bad_attribute' (Conv)": "strides",
                         "'bad_types' (Add)": "int64", "'unknown_domain' (Fancy)": "com.example",
                         "'endless' (Loop)": "trip count 'n' is not constant", "'choice' (If)": "condition 'flag' is not constant"}.items():
        line, = [line for line in text.splitlines() if node in line]
        assert reason in line, line
