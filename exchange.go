package decorum

import "net/netip"

// An Exchange is one request and its answer, byte for byte as they went over
// the connection (inside of TLS, if there was any). It is HTTP/1.1.
type Exchange struct {
	Request  []byte
	Response []byte         // as far as it was read; interim answers (1xx) and more may surround it
	Addr     netip.AddrPort // of the server
	Cut      Cut            // why Response may end early
}

// A Cut is why the reading of an answer ended before the answer did.
type Cut uint8

// Cuts.
const (
	NotCut       Cut = iota // it was read to its end
	CutByLength             // it went on past a limit of size
	CutByTime               // it took longer than a limit of time
	Disconnected            // the server hung up, or the connection broke
	CutOtherwise            // it was not wanted, or made no sense
)

// String returns the word of ISO 28500:2017, 5.13, empty for NotCut.
func (c Cut) String() string {
	words := [...]string{"", "length", "time", "disconnect", "unspecified"}
	if int(c) < len(words) {
		return words[c]
	}
	return "unspecified"
}
