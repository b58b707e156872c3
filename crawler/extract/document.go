package extract

import "github.com/decorum-crawler/decorum"

// A Document is what a crawler needs of one HTML page.
type Document struct {
	Title     string      // of the first title element: blanks folded, at most 512 bytes
	Canonical decorum.URL // of the first link rel=canonical; zero if there is none
	Links     []Link      // in the order of the page, each URL once
	More      bool        // the page had more links than the limit
	Robots    []Rule      // what meta elements say to robots
}

// A Link is a URL that the page points to.
type Link struct {
	URL  decorum.URL
	Kind Kind
	// NoFollow says that every mention of the URL on the page bears
	// rel=nofollow, ugc or sponsored.
	NoFollow bool
}

// A Kind says what points to a link. If several things do, the lowest counts.
type Kind uint8

// Kinds of links.
const (
	Anchor    Kind = iota // a
	Area                  // area of an image map
	Frame                 // frame
	IFrame                // iframe
	Refresh               // meta http-equiv=refresh
	Next                  // link rel=next
	Prev                  // link rel=prev
	Canonical             // link rel=canonical
	Alternate             // link rel=alternate: another language or form of the page
	Feed                  // link rel=alternate of an RSS or Atom feed
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [...]string{"a", "area", "frame", "iframe", "refresh", "next", "prev", "canonical", "alternate", "feed"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// DefaultMaxLinks is how many links Scan takes from one page.
const DefaultMaxLinks = 50_000

// Limits of what is kept of a page.
const (
	maxTitle = 512  // bytes of the title
	maxRef   = 8192 // bytes of a link as written; a longer one is no link
	maxRules = 64   // agents that meta elements address
	maxAgent = 128  // bytes of an agent's name
)

// Scan reads one page; see Scanner.Scan.
func Scan(body []byte, contentType string, base decorum.URL) *Document {
	return new(Scanner).Scan(body, contentType, base)
}

// A Scanner reads pages one after the other and reuses its buffers. The zero
// Scanner is ready to use. It is not safe for use by several goroutines.
type Scanner struct {
	MaxLinks int // links taken from one page; 0 means DefaultMaxLinks

	ref   []byte // the link being read, decoded
	links []Link
	index map[decorum.URL]int // where in links a URL stands
}

// Scan returns what the page says, or nil if the content type is not that of
// HTML. base is the URL of the page. If contentType is empty, the body
// decides. Scan keeps nothing of body, which may be reused.
//
// The page is read in the encoding that its byte order mark, the content type
// or a meta element names, in this order; failing these as UTF-8 if it is
// valid, and else as windows-1252. Titles and links are UTF-8, query strings
// too: the standard would write those in the page's own encoding.
func (s *Scanner) Scan(body []byte, contentType string, base decorum.URL) *Document {
	media, charset := mediaOf(contentType, body)
	if media == notHTML {
		return nil
	}
	p := page{scanner: s, home: base, base: base, limit: s.MaxLinks, xhtml: media == asXML}
	if p.limit <= 0 {
		p.limit = DefaultMaxLinks
	}
	p.encode(body, charset)
	return p.read()
}
