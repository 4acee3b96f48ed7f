"""Ladders: what the tables make of a device that was asked for, and that the user's own is taken as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from stentor.catalog import RungSpec
from stentor.machine.gpu import Gpu
from stentor.machine.profile import Profile, ladder

CACHE = Path("/var/cache/stentor")
APU, CARD, VEGA, UNKNOWN = Gpu(1, "gfx1103"), Gpu(1, "gfx1201"), Gpu(1, "gfx90c"), Gpu(1, "gfx1399")


def made(device: str, gpu: Gpu | None = None) -> dict[str, Profile]:
    return {one.name: one for one in ladder(device, [], gpu, CACHE)}


def test_a_cpu_has_one_rung_with_nothing_set() -> None:
    assert ladder("cpu", [], APU, CACHE) == (Profile("cpu"),)
    assert not Profile("cpu").on_gpu


@pytest.mark.parametrize("device", ["rocm", "cuda", "gpu", "cuda:1", "mps"])
@pytest.mark.parametrize("gpu", [None, APU, UNKNOWN])
def test_a_gpu_has_a_safer_rung_and_the_cpu_below_it(device: str, gpu: Gpu | None) -> None:
    rungs = ladder(device, [], gpu, CACHE)
    assert [one.name for one in rungs] == ["gpu", "gpu-safe", "cpu"]
    assert [one.on_gpu for one in rungs] == [True, True, False]
    assert rungs[1].options == {"attention": "math", "dtype": "float32"}
    assert rungs[2] == Profile("cpu")


@pytest.mark.parametrize(
    ("asked", "torch_says"),
    [
        ("rocm", "cuda:0"),
        ("cuda", "cuda:0"),
        ("gpu", "cuda:0"),
        ("cuda:1", "cuda:1"),
        ("rocm:2", "cuda:2"),
        ("mps", "mps"),
    ],
)
def test_a_device_is_named_as_torch_names_it(asked: str, torch_says: str) -> None:
    assert made(asked, APU)["gpu"].device == torch_says


def test_an_apu_copies_without_sdma_on_one_queue() -> None:
    environment = made("rocm", APU)["gpu"].environment
    assert environment["HSA_ENABLE_SDMA"] == "0"
    assert environment["GPU_MAX_HW_QUEUES"] == "1"
    assert environment["TORCH_BLAS_PREFER_HIPBLASLT"] == "0"


def test_a_card_keeps_sdma_and_its_queues_but_tunes_nothing() -> None:
    environment = made("rocm", CARD)["gpu"].environment
    assert not {"HSA_ENABLE_SDMA", "GPU_MAX_HW_QUEUES"} & set(environment)
    assert environment["PYTORCH_TUNABLEOP_ENABLED"] == "0"
    assert environment["MIOPEN_FIND_MODE"] == "FAST"


def test_what_is_for_rdna_is_not_set_on_vega() -> None:
    environment = made("rocm", VEGA)["gpu"].environment
    assert "TORCH_BLAS_PREFER_HIPBLASLT" not in environment
    assert environment["HSA_ENABLE_SDMA"] == "0"


@pytest.mark.parametrize("device", ["gpu", "cuda", "cuda:0"])
def test_an_amd_gpu_gets_its_environment_by_torchs_name_too(device: str) -> None:
    assert made(device, APU)["gpu"].environment == made("rocm", APU)["gpu"].environment


def test_where_no_amd_gpu_is_shown_only_rocm_gets_rocms_variables() -> None:
    assert made("rocm")["gpu"].environment["PYTORCH_TUNABLEOP_ENABLED"] == "0"
    assert (
        made("cuda")["gpu"].environment == made("gpu")["gpu"].environment == made("mps", APU)["gpu"].environment == {}
    )


def test_what_miopen_learns_is_kept_in_the_cache_folder() -> None:
    environment = made("rocm", APU)["gpu"].environment
    assert environment["MIOPEN_USER_DB_PATH"].startswith(str(CACHE))
    assert environment["MIOPEN_CUSTOM_CACHE_DIR"].startswith(str(CACHE))


def test_no_rung_is_set_what_the_table_only_warns_of() -> None:
    for rung in made("rocm", APU).values():
        assert not {"HSA_ENABLE_INTERRUPT", "HSA_XNACK", "HSA_OVERRIDE_GFX_VERSION"} & set(rung.environment)


def test_flash_attention_is_off_on_an_amd_gpu_from_the_first_rung() -> None:
    assert made("rocm", APU)["gpu"].options == {"attention": "efficient"}


def test_the_users_own_ladder_is_taken_as_it_is() -> None:
    own = [RungSpec(name="mine", device="cuda:1", environment={"A": "1"}, options={"x": 2}), RungSpec(name="slow")]
    assert ladder("rocm", own, APU, CACHE) == (Profile("mine", "cuda:1", {"A": "1"}, {"x": 2}), Profile("slow"))
