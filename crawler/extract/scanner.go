package extract

import (
	"cmp"

	"github.com/decorum-crawler/decorum"
)

// A ScanResult is what a crawler needs of one HTML page.
type ScanResult struct {
	Title          string       // of the first title element: blanks folded, at most 512 bytes
	CanonicalURL   decorum.URL  // of the first link rel=canonical; zero if there is none
	BaseURL        decorum.URL  // what links are relative to: the page's URL, unless a base element says otherwise
	Links          []Link       // in the order of the page, each URL once
	LinksTruncated bool         // there were more links than Scanner.MaxLinks, or longer ones: those are not here
	RobotsMeta     []RobotsMeta // what meta elements say to robots
	// TDMReservation and TDMPolicyMeta are what the meta elements tdm-reservation and
	// tdm-policy say (TDM Reservation Protocol, TDM Metadata in HTML Content), as they are written:
	// of several the first, but "1" goes before all else.
	TDMReservationMeta, TDMPolicyMeta string
}

// A Link is a URL that the page points to.
type Link struct {
	URL  decorum.URL
	Kind LinkKind
	// FollowableKind is the lowest kind of the mentions that bear no NoFollowRels; if each bears one, of
	// the first. What is named by a nofollow anchor and, without one, as an alternate
	// may be followed as an alternate only.
	FollowableKind LinkKind
	Rel            NoFollowRels // if every mention of the URL bears one: all of them; else none
	IsFeed         bool         // one of the mentions announces it as a feed, whatever its Kind
}

// NoFollow reports whether the page asks not to follow the link: whatever it
// says of why, every mention of the URL bears nofollow, ugc or sponsored.
func (l Link) NoFollow() bool { return l.Rel != 0 }

// A NoFollowRels is a set of what an anchor's rel says of whom a link is from.
type NoFollowRels uint8

// What rel says.
const (
	NoFollow  NoFollowRels = 1 << iota // the page does not vouch for it
	UGC                                // from a user of the site
	Sponsored                          // paid for
)

// addMention adds another mention of the link.
func (l *Link) addMention(kind LinkKind, rel NoFollowRels) {
	l.Kind = min(l.Kind, kind)
	l.IsFeed = l.IsFeed || kind == Feed
	switch {
	case rel == 0 && l.Rel == 0:
		l.FollowableKind = min(l.FollowableKind, kind)
	case rel == 0:
		l.FollowableKind, l.Rel = kind, 0
	case l.Rel != 0:
		l.Rel |= rel
	}
}

// A LinkKind says what points to a link. If several things do, the lowest counts.
type LinkKind uint8

// Kinds of links.
const (
	Anchor    LinkKind = iota // a, that of an svg too
	Area                      // area of an image map
	Frame                     // frame
	IFrame                    // iframe
	Refresh                   // meta http-equiv=refresh
	Next                      // link rel=next
	Prev                      // link rel=prev
	Canonical                 // link rel=canonical
	Alternate                 // link rel=alternate: another language or form of the page
	Feed                      // link rel=alternate of an RSS or Atom feed
	AMP                       // link rel=amphtml: the page in AMP
	Image                     // img, and source of a picture: src and srcset; see Scanner.IncludeImages
)

// String returns the name of the kind.
func (k LinkKind) String() string {
	names := [...]string{"a", "area", "frame", "iframe", "refresh", "next", "prev", "canonical", "alternate", "feed", "amphtml", "img"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// DefaultMaxLinks is how many links ScanPage takes from one page.
const DefaultMaxLinks = 50_000

// Limits of what is kept of a page.
const (
	maxTitleBytes       = 512  // bytes of the title
	maxRefBytes         = 8192 // bytes of a link as written, or of a base; a longer one is none
	maxRobotsMetaAgents = 64   // agents that meta elements address
	maxAgentBytes       = 128  // bytes of an agent's name
)

// Bounds of the URLs of a page, added up: a long base would make a link of many
// bytes of each that is written with two.
const (
	avgURLBytes      = 512     // bytes of each link that is taken
	minTotalURLBytes = 1 << 20 // bytes that there are in any case
)

// A Scanner reads pages one after the other and reuses its buffers. The zero
// Scanner is ready to use. It is not safe for use by several goroutines.
type Scanner struct {
	MaxLinks      int  // links taken from one page, of 512 bytes on average; 0 means DefaultMaxLinks
	IncludeImages bool // images are links, too

	linkBuf        []byte // the link being read, decoded
	links          []Link
	linkIndexByURL map[decorum.URL]int // where in links a URL stands
}

// ScanPage returns what the page says, or nil if the content type is not that of
// HTML. base is the URL of the page. If contentType is empty, the body
// decides. ScanPage keeps nothing of body, which may be reused.
//
// The page is read in the encoding that its byte order mark, the content type
// or a meta element names, in this order; failing these as UTF-8 if it is
// valid, and else as windows-1252. Titles and links are UTF-8, query strings
// too: the standard would write those in the page's own encoding.
func (s *Scanner) ScanPage(body []byte, contentType string, base decorum.URL) *ScanResult {
	syntax, charset := detectSyntaxAndCharset(contentType, body)
	if syntax == notHTML {
		return nil
	}
	p := s.newPageParser(base)
	p.isXHTML = syntax == xhtmlSyntax
	p.decodeInputToUTF8(body, charset)
	return p.readDocument()
}

// newPageParser returns a page at home that nothing was read of yet.
func (s *Scanner) newPageParser(home decorum.URL) *pageParser {
	p := &pageParser{scanner: s, pageURL: home, baseURL: home, maxLinks: cmp.Or(max(s.MaxLinks, 0), DefaultMaxLinks)}
	p.maxTotalURLBytes = max(p.maxLinks*avgURLBytes, minTotalURLBytes)
	return p
}
