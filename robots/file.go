package robots

import (
	"bytes"
	"iter"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// MaxFileBytes is the number of bytes of a robots.txt that Parse reads by default (FMT-08).
const MaxFileBytes = 500 << 10

// typicalLineBytes is an estimate of the length of a line, in bytes.
const typicalLineBytes = 24

// ParseOptions are the options for parsing a file. The zero value parses the Google dialect with
// its extensions.
type ParseOptions struct {
	Dialect Dialect
	// NoExtensions ignores the fields that Google does not know: Crawl-delay, Host, Clean-param
	// (DELAY-07, HOST-15, CLEAN-25), Content-Usage, Content-Signal, Request-rate and Visit-time. In
	// the Yandex dialect it ignores only Request-rate and Visit-time (SYN-14), because the other
	// fields belong to that dialect.
	NoExtensions bool
	// CrawlDelaySplitsGroups makes a Crawl-delay line end a run of user-agent lines, as rules do,
	// so that user-agent lines after it begin another group.
	CrawlDelaySplitsGroups bool
	// MaxBytes is the number of bytes that Parse reads of a body. Values below MaxFileBytes,
	// including zero, mean MaxFileBytes (FMT-09). GoogleOSS has no limit and reads the whole body if
	// MaxBytes is zero. The Yandex dialect ignores a file longer than MaxYandexFileBytes.
	MaxBytes int
}

// Parse parses body in the dialect d with its extensions. It never fails, and its time is linear in
// the length of body.
func Parse(body []byte, d Dialect) *File { return ParseOptions{Dialect: d}.Parse(body) }

// Parse parses body with the options. The File keeps no reference to body.
func (o ParseOptions) Parse(body []byte) *File {
	if o.Dialect == Yandex && (len(body) > MaxYandexFileBytes || bytes.IndexByte(body, 0) >= 0) {
		body = nil // too long, or binary (FMT-10, FMT-13)
	}
	rest, parse := o.textAndParseLine(body)
	f := &File{
		lines: make([]syntax.Line, 0, len(rest)/typicalLineBytes), dialect: o.Dialect,
		crawlDelaySplitsGroups: o.CrawlDelaySplitsGroups || o.Dialect == Yandex, // GRP-15
	}
	// Keep the lines that have a meaning, with their numbers; rules without a path get theirs.
	for number := int32(1); rest != ""; number++ {
		var text string
		text, rest = syntax.CutLine(rest)
		l, ok := parse(text)
		if !ok || o.NoExtensions && o.isOutsideDialect(l.Field) {
			continue
		}
		if o.Dialect == Yandex {
			l = invertEmptyRule(l)
		}
		f.kinds |= 1 << l.Field
		l.Number = number
		f.lines = append(f.lines, l)
	}
	return f
}

// isOutsideDialect reports whether f is an extension of the dialect.
func (o ParseOptions) isOutsideDialect(f syntax.FieldKind) bool {
	return f.IsUnknownToGoogle() && (o.Dialect != Yandex || f >= syntax.RequestRate)
}

// textAndParseLine returns the part of body to parse, without byte order mark, and the function that
// parses its lines.
func (o ParseOptions) textAndParseLine(body []byte) (string, func(string) (syntax.Line, bool)) {
	if o.Dialect != GoogleOSS {
		return strings.TrimPrefix(string(truncateAtLine(body, max(o.MaxBytes, MaxFileBytes))), "\ufeff"),
			syntax.ParseLine
	}
	if o.MaxBytes > 0 {
		body = truncateAtLine(body, max(o.MaxBytes, MaxFileBytes))
	}
	return skipBOM(string(body)), parseGoogleOSSLine
}

// truncateAtLine returns at most limit bytes of body. It drops the whole line that the limit would
// cut, because half a path could disallow or allow too much (FMT-11).
func truncateAtLine(body []byte, limit int) []byte {
	if len(body) <= limit {
		return body
	}
	if c := body[limit]; c == '\n' || c == '\r' {
		return body[:limit]
	}
	return body[:bytes.LastIndexAny(body[:limit], "\r\n")+1]
}

// A File is a parsed robots.txt: its lines with known fields, in order. It is immutable and safe for
// concurrent use.
type File struct {
	lines                  []syntax.Line
	dialect                Dialect
	crawlDelaySplitsGroups bool         // see ParseOptions; always set for Yandex
	kinds                  fieldKindSet // the kinds of fields that lines contains
}

// A fieldKindSet is a set of field kinds, as bits.
type fieldKindSet uint16

func (s fieldKindSet) has(k syntax.FieldKind) bool { return s&(1<<k) != 0 }

// A Line is a line of a robots.txt with a known field.
type Line struct {
	Field  string // in lower case, as in "disallow"
	Value  string // without comment and surrounding blanks
	Number int    // its line number in the file, from 1
}

// Dialect returns the dialect in which the file was parsed.
func (f *File) Dialect() Dialect { return f.dialect }

// Sitemaps returns the sitemaps that the file names, in its order and without repetitions. They apply
// to all agents (SMAP-06) and may be on other hosts (SMAP-04). Values that are not absolute URLs are
// left out (SMAP-02).
func (f *File) Sitemaps() []decorum.URL {
	var found []decorum.URL
	seen := make(map[decorum.URL]bool)
	for _, l := range f.lines {
		if l.Field != syntax.Sitemap {
			continue
		}
		if u, ok := syntax.ParseAbsoluteURL(l.Value); ok && !seen[u] {
			seen[u] = true
			found = append(found, u)
		}
	}
	return found
}

// AgentTokens returns the product tokens that user-agent lines name, including "*": in lower case, in
// the order of the file and without repetitions. AgentFromName returns an Agent for each.
func (f *File) AgentTokens() []string {
	var tokens []string
	seen := make(map[string]bool)
	for _, l := range f.lines {
		if l.Field != syntax.UserAgent {
			continue
		}
		for _, token := range f.dialect.agentLineTokens(l.Value) {
			if token = strings.ToLower(token); token != "" && !seen[token] {
				seen[token] = true
				tokens = append(tokens, token)
			}
		}
	}
	return tokens
}

// Lines returns an iterator over the lines of a robots.txt and their numbers, from 1 as in a Verdict.
// The lines come without their line ends (FMT-02).
func Lines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for n := 1; text != ""; n++ {
			var first string
			if first, text = syntax.CutLine(text); !yield(n, first) {
				return
			}
		}
	}
}

// MainMirror returns the main mirror that the file names, false if it names none (HOST-01). The
// mirror is a host in lower case, with the prefix https:// if only https reaches it (HOST-07), and
// with a port unless it is the scheme's default port (HOST-08, HOST-14). The first valid Host line
// counts, wherever it is in the file (HOST-04, HOST-05, HOST-13). The mirror is a hint: no package of
// this module visits another host because of it (HOST-03).
func (f *File) MainMirror() (string, bool) {
	for _, l := range f.lines {
		if l.Field == syntax.Host {
			if host, ok := syntax.ParseMainMirror(l.Value); ok {
				return host, true
			}
		}
	}
	return "", false
}
