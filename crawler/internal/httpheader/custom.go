package httpheader

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// reservedHeaders has the headers that users may not add to requests, and why.
var reservedHeaders = map[string]string{
	"Host":       "the URL determines it",
	"User-Agent": "the crawl's agent determines it",
	"From":       "the crawl's contact determines it",

	"Accept-Encoding": "the crawl requests the codings that it can decode",
	"Range":           "pages are requested whole",
	"Expect":          "requests have no body",

	"If-Match":            "the crawl makes requests conditional itself",
	"If-Modified-Since":   "the crawl makes requests conditional itself",
	"If-None-Match":       "the crawl makes requests conditional itself",
	"If-Range":            "the crawl makes requests conditional itself",
	"If-Unmodified-Since": "the crawl makes requests conditional itself",

	"Cookie":        "cookies are kept by host: see fetch.cookies",
	"Cookie2":       "cookies are kept by host: see fetch.cookies",
	"Set-Cookie":    "it belongs in responses",
	"Authorization": "every host of the crawl would receive it",

	"Signature":       "a signature is valid for one request: see agent.signature",
	"Signature-Input": "a signature is valid for one request: see agent.signature",
	"Signature-Agent": "a signature is valid for one request: see agent.signature",

	"Connection":        "it applies to one connection, and the transport sets it",
	"Keep-Alive":        "it applies to one connection, and the transport sets it",
	"Te":                "it applies to one connection, and the transport sets it",
	"Trailer":           "it applies to one connection, and the transport sets it",
	"Transfer-Encoding": "it applies to one connection, and the transport sets it",
	"Upgrade":           "it applies to one connection, and the transport sets it",
	"Http2-Settings":    "it applies to one connection, and the transport sets it",
}

// maxHeaderValueBytes bounds the value of a header: many servers refuse requests with more than 8
// KiB of headers.
const maxHeaderValueBytes = 4 << 10

// CheckCustom returns an error if a header may not be added to every request: it is malformed (RFC
// 9110, section 5) or has more than 4 KiB, it applies to one connection only (section 7.6.1), or
// the crawl sets it itself.
func CheckCustom(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("not the name of a header")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("its value has characters that are invalid in a header")
	}
	if len(value) > maxHeaderValueBytes {
		return fmt.Errorf("its value has %d bytes: expected %d at most", len(value), maxHeaderValueBytes)
	}
	// The header is well-formed; now see whether the crawl, a proxy or the transport owns it.
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
