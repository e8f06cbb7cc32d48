"""A set of offsets that takes about one bit for each, as most of them lie close together."""

_BITS = 12
_MASK = (1 << _BITS) - 1


class OffsetSet:
    """It only grows. An offset far from all others takes a whole block of 4,096 bits."""

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}

    def add(self, offset: int) -> None:
        """Add an offset."""
        block = self._blocks.get(offset >> _BITS)
        if block is None:
            block = self._blocks[offset >> _BITS] = bytearray((_MASK + 1) // 8)
        block[(offset & _MASK) >> 3] |= 1 << (offset & 7)

    def __contains__(self, offset: int) -> bool:
        block = self._blocks.get(offset >> _BITS)
        return block is not None and bool(block[(offset & _MASK) >> 3] & 1 << (offset & 7))
