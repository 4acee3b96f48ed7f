"""GPUs from recorded folders: what the kernel shows, and what happens where it shows nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from stentor.machine.gpu import Gpu, busy_percent, find_gpus, gfx_name
from stentor.machine.tables import chips

CPU_NODE = "cpu_cores_count 16\nsimd_count 0\nvendor_id 0\ndevice_id 0\ngfx_target_version 0\n"


def a_node(root: Path, number: int, text: str) -> Path:
    folder = root / "sys/class/kfd/kfd/topology/nodes" / str(number)
    folder.mkdir(parents=True)
    (folder / "properties").write_text(text)
    return folder


def a_gpu_node(root: Path, number: int, version: int) -> Path:
    return a_node(root, number, f"simd_count 24\nvendor_id 4098\ndevice_id 5567\ngfx_target_version {version}\n")


def a_card(root: Path, name: str) -> Path:
    file = root / "sys/class/drm" / name / "device/gpu_busy_percent"
    file.parent.mkdir(parents=True)
    return file


def test_a_gpu_is_found_beside_the_cpu_node(tmp_path: Path) -> None:
    a_node(tmp_path, 0, CPU_NODE)
    a_gpu_node(tmp_path, 1, 110003)
    assert find_gpus(tmp_path) == [Gpu(1, "gfx1103")]


def test_gpus_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number, version in ((10, 100306), (2, 120001)):
        a_gpu_node(tmp_path, number, version)
    assert [one.gfx for one in find_gpus(tmp_path)] == ["gfx1201", "gfx1036"]


@pytest.mark.parametrize(
    ("version", "name"),
    [(110003, "gfx1103"), (110501, "gfx1151"), (90012, "gfx90c"), (100305, "gfx1035"), (90010, "gfx90a")],
)
def test_the_step_of_a_target_is_written_in_hex(version: int, name: str) -> None:
    assert gfx_name(version) == name


def test_every_chip_of_the_table_is_a_name_that_the_kernel_can_give() -> None:
    for one in chips():
        major, minor, step = int(one.gfx[3:-2]), int(one.gfx[-2], 16), int(one.gfx[-1], 16)
        assert gfx_name(major * 10_000 + minor * 100 + step) == one.gfx


def test_no_driver_means_no_gpu(tmp_path: Path) -> None:
    assert find_gpus(tmp_path) == []


@pytest.mark.parametrize("text", ["", "gfx_target_version\n", "gfx_target_version x\n\xff", "vendor_id 4098\n"])
def test_properties_that_say_nothing_are_no_gpu(tmp_path: Path, text: str) -> None:
    a_node(tmp_path, 1, text)
    assert find_gpus(tmp_path) == []


def test_properties_that_cannot_be_read_are_no_gpu_and_hide_no_other(tmp_path: Path) -> None:
    (a_gpu_node(tmp_path, 1, 110003) / "properties").unlink()
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/1/properties").mkdir()
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/2x").mkdir()
    a_gpu_node(tmp_path, 3, 110501)
    assert find_gpus(tmp_path) == [Gpu(3, "gfx1151")]


def test_the_load_of_each_card_is_read(tmp_path: Path) -> None:
    a_card(tmp_path, "card0").write_text("97\n")
    a_card(tmp_path, "card1").write_text("0\n")
    assert busy_percent(tmp_path) == {"card0": 97, "card1": 0}


def test_a_load_that_cannot_be_read_says_why_and_is_never_zero(tmp_path: Path) -> None:
    a_card(tmp_path, "card0").mkdir()
    a_card(tmp_path, "card1").write_text("busy\n")
    assert busy_percent(tmp_path) == {"card0": "not readable: Is a directory", "card1": "not readable: no number"}


def test_this_machine_is_read_without_an_error() -> None:
    find_gpus()
    busy_percent()
