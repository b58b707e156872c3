package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"net/http"
)

// A message is an HTTP/1.1 response as it was received.
type message struct {
	raw     []byte // from the status line to the end of the body
	head    int    // bytes of raw before the body
	status  int
	payload string // digest of the body without its transfer coding; empty if it is not whole
	empty   bool   // there is no payload
	open    bool   // the body has no length: the connection's end is its end
}

// readMessage finds the final response in what a server sent, reading it as
// net/http does, which received it. What stands before and after is not part of
// it. A body that ends early is no error, a header that does is. cut says that
// nobody waited for the end. The method is the request's: to HEAD there is no body,
// whatever the header says of it.
func readMessage(method string, received []byte, cut bool) (message, error) {
	for {
		m, err := readOne(method, received)
		if err != nil {
			return m, err
		}
		if m.status >= 200 {
			if cut && m.open {
				m.payload = ""
			}
			return m, nil
		}
		received = received[len(m.raw):]
	}
}

// methodOf returns the method of a request as it was sent.
func methodOf(request []byte) string {
	method, _, _ := bytes.Cut(request, []byte(" "))
	return string(method)
}

func readOne(method string, received []byte) (message, error) {
	source := bytes.NewReader(received)
	buffered := bufio.NewReader(source)
	read := func() int { return len(received) - source.Len() - buffered.Buffered() }
	res, err := http.ReadResponse(buffered, &http.Request{Method: method})
	if err != nil {
		return message{}, fmt.Errorf("not a whole header of HTTP/1.1: %w", err)
	}
	defer res.Body.Close()
	m := message{head: read(), status: res.StatusCode, open: res.ContentLength < 0 && len(res.TransferEncoding) == 0}
	hash := sha1.New()
	n, err := io.Copy(hash, res.Body)
	if err != nil {
		m.raw = received // all that there is
		return m, nil
	}
	m.raw, m.payload, m.empty = received[:read()], label(hash.Sum(nil)), n == 0
	return m, nil
}
