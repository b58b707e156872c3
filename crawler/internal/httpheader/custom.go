package httpheader

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reservedHeaders are the headers that may not be added to requests, and why.
var reservedHeaders = map[string]string{
	"Host":       "the URL says it",
	"User-Agent": "the agent of the crawl says it",
	"From":       "the contact of the crawl says it",

	"Accept-Encoding": "the crawl asks for what it can decode",
	"Range":           "pages are asked for whole",
	"Expect":          "requests have no body",

	"If-Match":            "the crawl asks for what has changed by itself",
	"If-Modified-Since":   "the crawl asks for what has changed by itself",
	"If-None-Match":       "the crawl asks for what has changed by itself",
	"If-Range":            "the crawl asks for what has changed by itself",
	"If-Unmodified-Since": "the crawl asks for what has changed by itself",

	"Cookie":        "cookies are kept by host: see fetch.cookies",
	"Cookie2":       "cookies are kept by host: see fetch.cookies",
	"Set-Cookie":    "it is for answers",
	"Authorization": "every host of the crawl would be told",

	"Signature":       "a signature is of one request: see agent.signature",
	"Signature-Input": "a signature is of one request: see agent.signature",
	"Signature-Agent": "a signature is of one request: see agent.signature",

	"Connection":        "it is for one connection, and the transport's",
	"Keep-Alive":        "it is for one connection, and the transport's",
	"Te":                "it is for one connection, and the transport's",
	"Trailer":           "it is for one connection, and the transport's",
	"Transfer-Encoding": "it is for one connection, and the transport's",
	"Upgrade":           "it is for one connection, and the transport's",
	"Http2-Settings":    "it is for one connection, and the transport's",
}

// maxHeaderValueBytes is how many bytes the value of a header may have: a request whose
// headers have more than 8 KiB together is refused by many servers.
const maxHeaderValueBytes = 4 << 10

// CheckCustom returns why a header may not go with every request, if so: it is
// not well-formed (RFC 9110, section 5) or has more than 4 KiB, it is for one connection only (section
// 7.6.1), or the crawl has something of its own to say there.
func CheckCustom(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("not the name of a header")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("its value holds characters that no header may hold")
	}
	if len(value) > maxHeaderValueBytes {
		return fmt.Errorf("its value has %d bytes: expected %d at most", len(value), maxHeaderValueBytes)
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	why := reservedHeaders[name]
	switch {
	case strings.HasPrefix(name, "Proxy-"):
		why = "it is for a proxy: see fetch.proxy"
	case strings.HasPrefix(name, "Content-"):
		why = "requests have no body"
	}
	if why != "" {
		return errors.New("it may not be set: " + why)
	}
	return nil
}
