package extract

import (
	"cmp"

	"github.com/decorum-crawler/decorum"
)

// A ScanResult is what a crawler needs to know of one HTML page.
type ScanResult struct {
	Title          string       // text of the first title element, white space folded, at most 512 bytes
	CanonicalURL   decorum.URL  // of the first link rel=canonical; zero if the page has none
	BaseURL        decorum.URL  // links are relative to it: the first base element, or the page's URL
	Links          []Link       // in the order of the page, each URL once
	LinksTruncated bool         // the page has links beyond the limits of Scanner.MaxLinks, which Links lacks
	RobotsMeta     []RobotsMeta // directives of meta elements, by agent
	// TDMReservationMeta and TDMPolicyMeta are the contents of the meta elements tdm-reservation
	// and tdm-policy (TDM Reservation Protocol, TDM Metadata in HTML Content), as written. If there
	// are several, the first counts, but a reservation of "1" takes precedence.
	TDMReservationMeta, TDMPolicyMeta string
}

// A Link is a URL that the page mentions once or more.
type Link struct {
	URL  decorum.URL
	Kind LinkKind // lowest kind of all mentions
	// FollowableKind is the lowest kind of the mentions without NoFollowRels; if every mention has
	// some, the kind of the first mention. For example, a URL in a nofollow anchor and in a link
	// rel=alternate may be followed as an alternate only.
	FollowableKind LinkKind
	Rel            NoFollowRels // all rels of the mentions if every mention has one, else 0
	IsFeed         bool         // a mention announces the URL as a feed, whatever Kind is
	// IsImage and IsResource say that a mention makes the URL an image, or another resource, of the page,
	// whatever Kind is.
	IsImage, IsResource bool
}

// NoFollow reports whether the page asks robots not to follow the link: every mention has nofollow,
// ugc or sponsored.
func (l Link) NoFollow() bool { return l.Rel != 0 }

// A NoFollowRels is the set of rel tokens of an anchor that qualify the origin of a link.
type NoFollowRels uint8

// Tokens of rel.
const (
	NoFollow  NoFollowRels = 1 << iota // the page does not vouch for the link
	UGC                                // a user of the site contributed the link
	Sponsored                          // somebody paid for the link
)

// addMention updates l with another mention of its URL.
func (l *Link) addMention(kind LinkKind, rel NoFollowRels) {
	l.Kind = min(l.Kind, kind)
	l.IsFeed, l.IsImage = l.IsFeed || kind == Feed, l.IsImage || kind == Image
	l.IsResource = l.IsResource || kind == Resource
	switch {
	case rel == 0 && l.Rel == 0:
		l.FollowableKind = min(l.FollowableKind, kind)
	case rel == 0:
		l.FollowableKind, l.Rel = kind, 0
	case l.Rel != 0:
		l.Rel |= rel
	}
}

// A LinkKind says which element mentions a link. If several elements do, the lowest kind counts.
type LinkKind uint8

// Kinds of links.
const (
	Anchor    LinkKind = iota // a, also in svg
	Area                      // area of an image map
	Frame                     // frame
	IFrame                    // iframe
	Embed                     // embed, and object data, of pages, PDF files and the like
	Refresh                   // meta http-equiv=refresh
	Form                      // form action and formaction, GET only, no query; only with Scanner.IncludeForms
	Citation                  // cite of a blockquote or q
	Info                      // link rel=author, help, license, privacy-policy or terms-of-service
	Next                      // link rel=next
	Prev                      // link rel=prev
	Canonical                 // link rel=canonical
	Alternate                 // link rel=alternate: another language or form of the page
	Feed                      // link rel=alternate of an RSS or Atom feed
	AMP                       // link rel=amphtml: the page in AMP
	Image                     // img, and source of a picture; only with Scanner.IncludeImages or IncludeResources
	Resource                  // what else a browser needs to show the page; only with Scanner.IncludeResources
)

// String returns the name of the element or relation.
func (k LinkKind) String() string {
	names := [...]string{"a", "area", "frame", "iframe", "embed", "refresh", "form", "cite", "link", "next",
		"prev", "canonical", "alternate", "feed", "amphtml", "img", "resource"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// DefaultMaxLinks is the default of Scanner.MaxLinks.
const DefaultMaxLinks = 50_000

// Limits of what a ScanResult keeps.
const (
	maxTitleBytes       = 512  // bytes of the title
	maxRefBytes         = 8192 // bytes of a link as written, or of a base; longer ones are ignored
	maxRobotsMetaAgents = 64   // agents with meta elements
	maxAgentBytes       = 128  // bytes of an agent's name
)

// Limits of the total length of a page's URLs. Without them, a long base would expand each link of two
// bytes to thousands.
const (
	avgURLBytes      = 512     // bytes per link that MaxLinks allows
	minTotalURLBytes = 1 << 20 // bytes that are always allowed
)

// A Scanner reads pages one after the other and reuses its buffers. The zero Scanner is ready to
// use. It is not safe for concurrent use.
type Scanner struct {
	MaxLinks      int  // links taken from one page, with 512 bytes each on average; 0: DefaultMaxLinks
	IncludeImages bool // images count as links
	IncludeForms  bool // the actions of forms with the method GET count as links, without their queries
	// IncludeResources says that styles, scripts, fonts, images, media and icons count as links.
	IncludeResources bool

	linkBuf        []byte              // the link being read, with references decoded; reused
	links          []Link              // of the current page
	linkIndexByURL map[decorum.URL]int // index in links
}

// ScanPage returns what the page says, or nil if contentType is neither HTML nor XHTML, nor XML whose
// first element is html. An empty contentType is detected from body. base is the URL of the page.
// ScanPage keeps no reference to body.
//
// ScanPage reads the page in the encoding that its byte order mark, contentType, a meta element or an XML
// declaration names, in this order; XHTML's declaration takes precedence over its meta elements. Without
// any of these it uses UTF-8 if the page is valid UTF-8, and else windows-1252. As in browsers, the
// query of a link is in the encoding of the page, its host and path are in UTF-8, and U+FFFD stands for
// bytes that are not text in that encoding.
func (s *Scanner) ScanPage(body []byte, contentType string, base decorum.URL) *ScanResult {
	syntax, charset := detectSyntaxAndCharset(contentType, body)
	if syntax == notHTML {
		return nil
	}
	p := s.newPageParser(base)
	p.isXHTML = syntax != htmlSyntax
	p.decodeInputToUTF8(body, charset)
	if syntax == xmlSyntax && !p.beginsWithHTMLElement() {
		return nil
	}
	return p.readDocument()
}

// newPageParser returns a parser for the page at home, without input.
func (s *Scanner) newPageParser(home decorum.URL) *pageParser {
	p := &pageParser{scanner: s, pageURL: home, baseURL: home, maxLinks: cmp.Or(max(s.MaxLinks, 0), DefaultMaxLinks)}
	p.maxTotalURLBytes = max(p.maxLinks*avgURLBytes, minTotalURLBytes)
	if s.IncludeResources {
		p.attrs.resource = new(resourceAttributes)
	}
	return p
}
