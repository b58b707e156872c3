package testfile

import (
	"bytes"
	"math/rand/v2"
)

// pageSize is how many bytes an operating system writes to a disk at a time.
const pageSize = 4096

// AfterPowerCut returns what may be left of text, a file whose bytes before from were synced, after
// a loss of power. Each later page is unchanged, zero or random, and the end may be missing.
func AfterPowerCut(r *rand.Rand, text []byte, from int64) []byte {
	text = bytes.Clone(text)
	for at := from; at < int64(len(text)); {
		end := min(int64(len(text)), (at/pageSize+1)*pageSize)
		switch r.IntN(3) {
		case 0:
			clear(text[at:end])
		// The page holds what the disk held there before.
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
