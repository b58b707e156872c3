package robots

import (
	"bytes"
	"iter"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// MaxFileBytes is how many bytes of a robots.txt are read (FMT-08).
const MaxFileBytes = 500 << 10

// typicalLineBytes is about how long lines are, in bytes.
const typicalLineBytes = 24

// ParseOptions say how a file is read. The zero value reads the Google dialect with
// its extensions.
type ParseOptions struct {
	Dialect Dialect
	// NoExtensions ignores the lines that Google does not know: Crawl-delay, Host,
	// Clean-param (DELAY-07, HOST-15, CLEAN-25), Content-Usage, Content-Signal,
	// Request-rate and Visit-time. In the Yandex dialect it ignores the last two
	// only (SYN-14): the others belong to it.
	NoExtensions bool
	// CrawlDelaySplitsGroups makes a Crawl-delay line end a run of user-agent lines, as
	// rules do, so that those after it begin a group of their own.
	CrawlDelaySplitsGroups bool
	// MaxBytes is how many bytes are read. What is less than MaxFileBytes,
	// zero included, means that constant (FMT-09); but GoogleOSS, which knows
	// no limit, reads all of the body if MaxBytes is zero. Of a file that is longer
	// than MaxYandexFileBytes the Yandex dialect reads nothing.
	MaxBytes int
}

// Parse reads body in the dialect d, extensions included. It never fails, and
// its time is linear in the body.
func Parse(body []byte, d Dialect) *File { return ParseOptions{Dialect: d}.Parse(body) }

// Parse reads body as the options say. The File keeps no reference to body.
func (o ParseOptions) Parse(body []byte) *File {
	if o.Dialect == Yandex && (len(body) > MaxYandexFileBytes || bytes.IndexByte(body, 0) >= 0) {
		body = nil // FMT-10, FMT-13
	}
	rest, parse := o.textAndParseLine(body)
	f := &File{
		lines: make([]syntax.Line, 0, len(rest)/typicalLineBytes), dialect: o.Dialect,
		crawlDelaySplitsGroups: o.CrawlDelaySplitsGroups || o.Dialect == Yandex, // GRP-15
	}
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

// isOutsideDialect reports whether the field is an extension of the dialect.
func (o ParseOptions) isOutsideDialect(f syntax.FieldKind) bool {
	return f.IsUnknownToGoogle() && (o.Dialect != Yandex || f >= syntax.RequestRate)
}

// textAndParseLine returns what of body is read, and how its lines are.
func (o ParseOptions) textAndParseLine(body []byte) (string, func(string) (syntax.Line, bool)) {
	if o.Dialect != GoogleOSS {
		return strings.TrimPrefix(string(truncateAtLine(body, max(o.MaxBytes, MaxFileBytes))), "\ufeff"), syntax.ParseLine
	}
	if o.MaxBytes > 0 {
		body = truncateAtLine(body, max(o.MaxBytes, MaxFileBytes))
	}
	return skipBOM(string(body)), parseGoogleOSSLine
}

// truncateAtLine returns at most limit bytes of body. A line that the limit would cut in
// two goes whole: half a path could block or open too much (FMT-11).
func truncateAtLine(body []byte, limit int) []byte {
	if len(body) <= limit {
		return body
	}
	if c := body[limit]; c == '\n' || c == '\r' {
		return body[:limit]
	}
	return body[:bytes.LastIndexAny(body[:limit], "\r\n")+1]
}

// A File is a parsed robots.txt: the lines that mean something, in order. It
// is immutable and safe for concurrent use.
type File struct {
	lines                  []syntax.Line
	dialect                Dialect
	crawlDelaySplitsGroups bool
	kinds                  fieldKindSet // of lines
}

// A fieldKindSet is a set of kinds of fields, as bits.
type fieldKindSet uint16

func (s fieldKindSet) has(k syntax.FieldKind) bool { return s&(1<<k) != 0 }

// A Line is a line of a robots.txt that means something.
type Line struct {
	Field  string // in lower case, as in "disallow"
	Value  string // without comment and outer space
	Number int    // in the file, counted from 1
}

// Dialect returns how the file was read.
func (f *File) Dialect() Dialect { return f.dialect }

// Sitemaps returns the sitemaps that the file names, in its order, each once.
// They are tied to no agent (SMAP-06) and may be on other hosts (SMAP-04);
// values that are no complete URL are left out (SMAP-02).
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

// AgentTokens returns the product tokens that user-agent lines name, in lower case
// and the order of the file, each once; "*" as such. AgentFromName makes an Agent of one.
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

// Lines returns the lines of a robots.txt with their numbers, as verdicts count
// them, without what ends them (FMT-02).
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

// MainMirror returns the main mirror that the file names, and false if it names none
// (HOST-01). It is a host in lower case, after https:// if the mirror is to be
// reached by that only (HOST-07), and with a port if that is not the scheme's
// own (HOST-08, HOST-14). The first correct line counts, wherever it stands
// (HOST-04, HOST-05, HOST-13). It is a hint: nothing in this module goes to
// another host because of it (HOST-03).
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
