package testfile

import (
	"bytes"
	"math/rand/v2"
)

// pageSize is how many bytes a system writes to a disk at a time.
const pageSize = 4096

// AfterPowerCut returns what a loss of power makes of text, whose bytes before from were
// synced: each later page is there, zero, or what was on the disk before, and the end may be
// missing.
func AfterPowerCut(r *rand.Rand, text []byte, from int64) []byte {
	text = bytes.Clone(text)
	for at := from; at < int64(len(text)); {
		end := min(int64(len(text)), (at/pageSize+1)*pageSize)
		switch r.IntN(3) {
		case 0:
			clear(text[at:end])
		case 1:
			for i := at; i < end; i++ {
				text[i] = byte(r.Uint32())
			}
		}
		at = end
	}
	if r.IntN(2) == 0 {
		text = text[:from+r.Int64N(int64(len(text))-from+1)]
	}
	return text
}
