package decorum

import (
	"bytes"
	"net/netip"
)

// An Exchange is one request and its answer, byte for byte as they went over
// the connection (inside of TLS, if there was any). It is HTTP/1.1.
type Exchange struct {
	Request  []byte         // header and body
	Response []byte         // as far as it was read; interim answers (1xx) and more may surround it
	Addr     netip.AddrPort // of the server
	Cut      Cut            // why Response may end early
}

// Head returns the exchange as far as the header of the answer, nil of nil. Where
// there is no whole header, nothing is left of the answer.
func (x *Exchange) Head() *Exchange {
	if x == nil {
		return nil
	}
	head := *x
	head.Response, head.Cut = nil, CutOtherwise
	for at := 0; ; {
		size := headSize(x.Response[at:])
		if size == 0 {
			return &head
		}
		interim := bytes.HasPrefix(x.Response[at:], []byte("HTTP/1.1 1"))
		if at += size; !interim {
			head.Response = x.Response[:at:at]
			return &head
		}
	}
}

// headSize returns how long the header is with which b begins, the empty line
// after it included, 0 if it does not end in b. Lines may end in LF alone
// (RFC 9112, section 2.2).
func headSize(b []byte) int {
	for i, c := range b {
		if c != '\n' {
			continue
		}
		rest := bytes.TrimPrefix(b[i+1:], []byte("\r"))
		if len(rest) > 0 && rest[0] == '\n' {
			return len(b) - len(rest) + 1
		}
	}
	return 0
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
