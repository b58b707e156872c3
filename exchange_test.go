package decorum_test

import (
	"testing"

	"github.com/decorum-crawler/decorum"
)

func TestExchangeHeaderOnly(t *testing.T) {
	for _, tt := range []struct{ name, response, head string }{
		{"with a body", "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"},
		{"without one", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
		{"after interim answers", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 " +
			"Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx",
			"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"},
		{"bare line ends", "HTTP/1.1 200 OK\nA: b\n\nbody", "HTTP/1.1 200 OK\nA: b\n\n"},
		{"mixed line ends", "HTTP/1.1 200 OK\nA: b\r\n\nbody\r\n\r\n", "HTTP/1.1 200 OK\nA: b\r\n\n"},
		{"broken in the header", "HTTP/1.1 200 OK\r\nA: b\r\n", ""},
		{"broken after an interim answer", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", ""},
		{"nothing", "", ""},
	} {
		x := &decorum.RawExchange{RawRequest: []byte("GET / HTTP/1.1\r\n\r\n"), RawResponse: []byte(tt.response)}
		head := x.HeaderOnly()
		if string(head.RawResponse) != tt.head || string(head.RawRequest) != string(x.RawRequest) ||
			head.Truncation != decorum.TruncatedUnspecified {
			t.Errorf("%s: %q", tt.name, head.RawResponse)
		}
		if string(x.RawResponse) != tt.response || x.Truncation != decorum.NotTruncated {
			t.Errorf("%s: the exchange itself has changed", tt.name)
		}
	}
	if (*decorum.RawExchange)(nil).HeaderOnly() != nil {
		t.Error("the header of a nil exchange is not nil")
	}
}
