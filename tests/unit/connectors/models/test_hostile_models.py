"""Files of models that were made to do harm, or are damaged: an error, and nothing is done."""

from __future__ import annotations

import contextlib
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from venire.connectors.onnx import OnnxModel
from venire.connectors.sklearn import load
from venire.errors import FileError


def net(path: Path, nodes: list[Any], *weights: Any) -> Path:
    """A model of two numbers, `x`, that gives `y`."""
    shown = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    said = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [shown], [said], initializer=list(weights))
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def outside(location: str) -> Any:
    tensor = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return tensor


def test_a_net_reads_no_file_outside_of_its_folder(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.bin", tmp_path / "models"
    folder.mkdir()
    secret.write_bytes(np.ones(4, np.float32).tobytes())
    for location in ("../secret.bin", str(secret), "/etc/passwd"):
        path = net(
            folder / "n.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], outside(location)
        )
        with pytest.raises(FileError, match="not an ONNX model that can be run"):
            OnnxModel("m", path, fields=["a", "b"])


def test_a_net_calls_no_program_and_no_other_machine(tmp_path: Path) -> None:
    evil = helper.make_node("Evil", ["x"], ["y"], domain="evil")
    with pytest.raises(FileError):
        OnnxModel("m", net(tmp_path / "n.onnx", [evil]), fields=["a", "b"])
    model = OnnxModel(
        "m",
        net(tmp_path / "m.onnx", [helper.make_node("Softmax", ["x"], ["y"])]),
        fields=["a", "b"],
    )
    assert "AzureExecutionProvider" not in model._session.get_providers()


def test_a_damaged_net_is_an_error_of_no_great_length(tmp_path: Path) -> None:
    whole = net(tmp_path / "n.onnx", [helper.make_node("Softmax", ["x"], ["y"])]).read_bytes()
    draw, path = random.Random(0), tmp_path / "broken.onnx"
    for n in range(40):
        broken = bytearray(whole)
        broken[draw.randrange(len(broken))] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(broken[: draw.randrange(len(broken))] if n % 2 else broken))
        with contextlib.suppress(FileError):  # some are still models
            OnnxModel("m", path, fields=["a", "b"])
    path.write_bytes(b"x" * 10**6)
    with pytest.raises(FileError) as error:
        OnnxModel("m", path)
    assert len(str(error.value)) < 1000


def skops_file(path: Path, schema: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("schema.json", schema)
    return path


def function(loader: str) -> str:
    """A file that would call `os.system`."""
    nothing = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    return json.dumps(
        {
            "__class__": "system", "__module__": "os", "__loader__": loader,
            "content": {"module_path": "os", "function": "system"},
            "attrs": {**nothing, "content": [], "__id__": 2},
            "protocol": 2, "__id__": 1, "_skops_version": "0.16",
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "schema",
    ['{"a":' * 50_000, "[]", "{}", "7", "no json"]
    + [
        function(loader)
        for loader in ("FunctionNode", "OperatorFuncNode", "MethodNode", "TypeNode")
    ]
    + [json.dumps({"x" * 10**6: 1})],
    ids=range(10),
)
def test_a_skops_file_runs_nothing(
    tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    monkeypatch.setattr("os.system", called.append)
    with pytest.raises(FileError) as error:
        load(skops_file(tmp_path / "m.skops", schema))
    assert called == []
    assert len(str(error.value)) < 1000
