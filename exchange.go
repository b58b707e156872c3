package decorum

import (
	"bytes"
	"net/netip"
)

// An Exchange is one request and its answer, byte for byte as they went over
// the connection (inside of TLS, if there was any). It is HTTP/1.1.
type Exchange struct {
	RawRequest  []byte           // header and body
	RawResponse []byte           // as far as it was read; interim answers (1xx) and more may surround it
	Addr        netip.AddrPort   // of the server
	Truncation  TruncationReason // why RawResponse may end early
}

// HeaderOnly returns the exchange as far as the header of the answer, nil of nil. Where
// there is no whole header, nothing is left of the answer.
func (x *Exchange) HeaderOnly() *Exchange {
	if x == nil {
		return nil
	}
	head := *x
	head.RawResponse, head.Truncation = nil, TruncatedUnspecified
	for at := 0; ; {
		size := headerLen(x.RawResponse[at:])
		if size == 0 {
			return &head
		}
		interim := bytes.HasPrefix(x.RawResponse[at:], []byte("HTTP/1.1 1"))
		if at += size; !interim {
			head.RawResponse = x.RawResponse[:at:at]
			return &head
		}
	}
}

// headerLen returns how long the header is with which b begins, the empty line
// after it included, 0 if it does not end in b. Lines may end in LF alone
// (RFC 9112, section 2.2).
func headerLen(b []byte) int {
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

// A TruncationReason is why the reading of an answer ended before the answer did.
type TruncationReason uint8

// Cuts.
const (
	NotTruncated          TruncationReason = iota // it was read to its end
	TruncatedByLength                             // it went on past a limit of size
	TruncatedByTime                               // it took longer than a limit of time
	TruncatedByDisconnect                         // the server hung up, or the connection broke
	TruncatedUnspecified                          // it was not wanted, or made no sense
)

// String returns the word of ISO 28500:2017, 5.13, empty for NotTruncated.
func (c TruncationReason) String() string {
	names := [...]string{"", "length", "time", "disconnect", "unspecified"}
	if int(c) < len(names) {
		return names[c]
	}
	return "unspecified"
}
