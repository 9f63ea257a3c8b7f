from __future__ import annotations

from clusterregistry.apimachinery.bounded_cache import BoundedCache, bounded_cache


def test_a_result_is_computed_once() -> None:
    calls: list[str] = []

    @bounded_cache(4)
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    assert [length("ab"), length("ab"), length("c")] == [2, 2, 1]
    assert calls == ["ab", "c"]


def test_the_result_of_a_long_key_is_not_kept() -> None:
    calls: list[tuple[str, ...]] = []

    @bounded_cache(4, longest=2)
    def first(names: tuple[str, ...]) -> str:
        calls.append(names)
        return names[0]

    for names in (("a", "b"), ("a", "b", "c")) * 2:
        assert first(names) == "a"
    assert calls == [("a", "b"), ("a", "b", "c"), ("a", "b", "c")]


def test_a_full_cache_is_cleared_before_the_next_entry() -> None:
    cache: BoundedCache[int, str] = BoundedCache(2)
    for number in range(3):
        cache.put(number, str(number))
        assert cache[number] == str(number)
        assert len(cache) <= 2
    assert cache == {2: "2"}


def test_keys_of_clients_do_not_fill_the_memory() -> None:
    calls: list[str] = []

    @bounded_cache(8)
    def record(text: str) -> str:
        calls.append(text)
        return text

    for number in range(8):
        record(str(number))
    record("one more")
    assert len(calls) == 9
    record("0")
    assert calls[-1] == "0"
    assert len(calls) == 10
