package inspect

import (
	"cmp"
	"mime"
	"regexp"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// minReportedRequests is how many requests of a kind on a host a report mentions.
const minReportedRequests = 5

// A URLKindCost says what the URLs of one kind, which seldom lead to other pages, have cost on a host.
type URLKindCost struct {
	Host            string                 `json:"host"`
	Kind            frontier.RefusalReason `json:"kind"` // sort_links or feeds, as refusals beyond their limits
	Requests        int                    `json:"requests"`
	DuplicateBodies int                    `json:"duplicates"` // as HostDuplicates.DuplicateBodies
	Example         string                 `json:"example"`
	Setting         string                 `json:"setting"` // of the project file; leaves nearly all of them out

	sortParams []string // patterns of the parameters of sort links, with their values; at most maxSortParams
	// feedSegment is the last segment of the feeds' paths, except those at the root; empty: none was seen.
	feedSegment string
	// The paths differ in that segment, or it is longer than maxFeedSegment, or feeds have a query: pages may
	// have the same path.
	hasMixedFeedPaths bool
}

// A urlKindOnHost identifies a URLKindCost.
type urlKindOnHost struct {
	host string
	kind frontier.RefusalReason
}

// countURLKind counts the request if its URL is of a kind that a URLKindCost is about, and returns that, else
// nil.
func (s *QueryParamAnalysis) countURLKind(u decorum.URL, p parsedOutputRecord) *URLKindCost {
	key := urlKindOnHost{host: u.Origin().Host()}
	switch {
	case frontier.IsSortLink(p.Referrer, u):
		key.kind = frontier.TooManySortLinks
	case p.isFeed():
		key.kind = frontier.TooManyFeeds
	default:
		return nil
	}
	c := s.kindCosts[key]
	if c == nil {
		if len(s.kindCosts) >= maxParamPlaces {
			return nil
		}
		c = &URLKindCost{Host: key.host, Kind: key.kind, Example: plaintext.TruncateURL(u.String())}
		s.kindCosts[key] = c
	}
	c.Requests++
	if path, query, hasQuery := strings.Cut(u.PathAndQuery(), "?"); key.kind == frontier.TooManySortLinks {
		c.addSortParams(query)
	} else {
		c.addFeedPath(path, hasQuery)
	}
	return c
}

// isFeed reports whether the record is of a feed that a page announced. A page that a feed lists has the same
// source, but another type.
func (p *parsedOutputRecord) isFeed() bool {
	mediaType, _, _ := mime.ParseMediaType(p.ContentType)
	return p.URLSource == storage.SourceFeed.String() && mediaType != "application/xhtml+xml" &&
		(strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "json"))
}

// maxSortParams is how many parameters of sort links a setting names.
const maxSortParams = 16

func (c *URLKindCost) addSortParams(query string) {
	for param := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		param = strings.Clone(regexp.QuoteMeta(param)) // does not keep the URL in memory
		if len(c.sortParams) < maxSortParams && !slices.Contains(c.sortParams, param) {
			c.sortParams = append(c.sortParams, param)
		}
	}
}

// maxFeedSegment is the length of the longest segment of a path that a setting names, in bytes.
const maxFeedSegment = 100

func (c *URLKindCost) addFeedPath(path string, hasQuery bool) {
	directory, segment := "", strings.TrimSuffix(path, "/")
	if i := strings.LastIndexByte(segment, '/'); i >= 0 {
		directory, segment = segment[:i], path[i+1:]
	}
	switch {
	case directory == "": // at the root: the feed of the site
	case hasQuery, len(segment) > maxFeedSegment, c.feedSegment != "" && c.feedSegment != segment:
		c.hasMixedFeedPaths = true
	default:
		c.feedSegment = strings.Clone(segment)
	}
}

// suggestSetting sets c.Setting: an exclude pattern, or a lower limit for feeds whose paths differ.
func (c *URLKindCost) suggestSetting() {
	rest := ""
	switch {
	case c.Kind == frontier.TooManySortLinks:
		slices.Sort(c.sortParams)
		rest = `[^?]*\?((` + strings.Join(c.sortParams, "|") + `)([&;]|$))+$`
	case c.feedSegment == "" || c.hasMixedFeedPaths:
		c.Setting = "discover: {max_feeds: 1}"
		return
	default:
		rest = `.+/` + regexp.QuoteMeta(c.feedSegment) + `$`
	}
	pattern := `^https?://` + regexp.QuoteMeta(c.Host) + `(:\d+)?/` + rest
	c.Setting = "scope: {exclude: ['" + strings.ReplaceAll(pattern, "'", "''") + "']}"
}

// reportURLKindCosts returns the kinds with at least minReportedRequests on a host, those with the most
// requests first.
func (s *QueryParamAnalysis) reportURLKindCosts() []URLKindCost {
	costs := []URLKindCost{}
	for _, c := range s.kindCosts {
		if c.Requests >= minReportedRequests {
			c.suggestSetting()
			costs = append(costs, *c)
		}
	}
	slices.SortFunc(costs, func(a, b URLKindCost) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Host, b.Host),
			cmp.Compare(a.Kind, b.Kind))
	})
	return costs
}
