package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"net/http"
)

// A receivedResponse is an HTTP/1.1 response as it was received.
type receivedResponse struct {
	raw           []byte // from the status line to the end of the body
	headerSize    int    // bytes of raw before the body
	status        int
	payloadDigest string // digest of the body without its transfer coding; empty if it is not whole
	hasNoPayload  bool   // there is no payload
	untilClose    bool   // the body has no length: the connection's end is its end
}

// parseFinalResponse finds the final response in what a server sent, reading it as
// net/http does, which received it. What stands before and after is not part of
// it. A body that ends early is no error, a header that does is. cut says that
// nobody waited for the end. The method is the request's: to HEAD there is no body,
// whatever the header says of it.
func parseFinalResponse(method string, received []byte, truncated bool) (receivedResponse, error) {
	for {
		m, err := parseResponse(method, received)
		if err != nil {
			return m, err
		}
		if m.status >= 200 {
			if truncated && m.untilClose {
				m.payloadDigest = ""
			}
			return m, nil
		}
		received = received[len(m.raw):]
	}
}

func parseResponse(method string, received []byte) (receivedResponse, error) {
	source := bytes.NewReader(received)
	buffered := bufio.NewReader(source)
	consumed := func() int { return len(received) - source.Len() - buffered.Buffered() }
	res, err := http.ReadResponse(buffered, &http.Request{Method: method})
	if err != nil {
		return receivedResponse{}, fmt.Errorf("not a whole header of HTTP/1.1: %w", err)
	}
	defer res.Body.Close()
	m := receivedResponse{headerSize: consumed(), status: res.StatusCode, untilClose: res.ContentLength < 0 && len(res.TransferEncoding) == 0}
	hash := sha1.New()
	n, err := io.Copy(hash, res.Body)
	if err != nil {
		m.raw = received // all that there is
		return m, nil
	}
	m.raw, m.payloadDigest, m.hasNoPayload = received[:consumed()], digestLabel(hash.Sum(nil)), n == 0
	return m, nil
}
