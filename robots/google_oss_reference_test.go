package robots

import (
	"fmt"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/robots/internal/robotstest"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// An ossReference decides in the way of Google's published parser: it reads the file once per URL,
// line by line, and keeps the longest match of each kind for named and for general groups. Apart from
// parsing lines, it shares no code with the package.
type ossReference struct {
	agent, path                              string
	inStarGroup, inNamedGroup, sawNamedGroup bool // the groups of the current line; whether there was a named group
	agentRunEnded                            bool // a rule has ended the run of user-agent lines
	allowLength, disallowLength              int  // lengths of the longest matches, of general groups
	allowLengthNamed, disallowLengthNamed    int
}

func (r *ossReference) disallows(lines []syntax.Line) bool {
	for _, l := range lines {
		switch l.Field {
		case syntax.UserAgent:
			r.addUserAgent(l.Value)
		case syntax.Allow, syntax.Disallow:
			r.addRule(l.Field == syntax.Allow, refOSSEscape(l.Value))
		}
	}
	if r.sawNamedGroup {
		return r.disallowLengthNamed > r.allowLengthNamed
	}
	return r.disallowLength > r.allowLength
}

func (r *ossReference) addUserAgent(value string) {
	if r.agentRunEnded {
		r.inStarGroup, r.inNamedGroup, r.agentRunEnded = false, false, false
	}
	if value == "*" || len(value) > 1 && value[0] == '*' && strings.Contains(" \t\v\f", value[1:2]) {
		r.inStarGroup = true
		return
	}
	token := strings.TrimLeft(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
	token = strings.TrimSuffix(value, token)
	if refLower(token) == refLower(r.agent) {
		r.inNamedGroup, r.sawNamedGroup = true, true
	}
}

func (r *ossReference) addRule(allow bool, pattern string) {
	if !r.inStarGroup && !r.inNamedGroup {
		return
	}
	r.agentRunEnded = true
	if !refOSSMatch(pattern, r.path) {
		if i := strings.LastIndex(pattern, "/"); allow && i >= 0 && strings.HasPrefix(pattern[i:], "/index.htm") {
			r.addRule(true, pattern[:i]+"/$")
		}
		return
	}
	longest := map[[2]bool]*int{
		{true, true}: &r.allowLengthNamed, {true, false}: &r.allowLength,
		{false, true}: &r.disallowLengthNamed, {false, false}: &r.disallowLength,
	}[[2]bool{allow, r.inNamedGroup}]
	*longest = max(*longest, len(pattern))
}

// refOSSMatch reports whether pattern matches path. It keeps the set of all indexes in path that the
// pattern read so far can reach.
func refOSSMatch(pattern, path string) bool {
	places := map[int]bool{0: true}
	for i, c := range []byte(pattern) {
		if c == '$' && i == len(pattern)-1 {
			return places[len(path)]
		}
		next := map[int]bool{}
		for p := range places {
			for q := p; c == '*' && q <= len(path); q++ {
				next[q] = true
			}
			if c != '*' && p < len(path) && path[p] == c {
				next[p+1] = true
			}
		}
		places = next
	}
	return len(places) > 0
}

func refOSSEscape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case robotstest.IsEscape(s[i:]):
			b.WriteString(strings.ToUpper(s[i : i+3]))
			i += 2
		case s[i] >= 0x80:
			fmt.Fprintf(&b, "%%%02X", s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// refLower returns s with its ASCII letters in lower case.
func refLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// FuzzOSS proves that compiled rules decide as the reference does.
func FuzzOSS(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "", ""},
		{"\xef\xbbuser-agent: *\ndisalow /a**$\nallow: /ab\r\n", "x", "//h/abc#d"},
		{"useragent: x/2\nuser agent: *\tz\nallow: /%c3\xa9/index.html*\ndisallowed: /\n", "X", "http://h/%C3%A9/"},
		{"user-agent: x\nsitemap: y\nuser-agent: *\nallow:\ndisallow: /?a\x00b\ndisallow: /*b*$", "y", "http://h?ab"},
		{"user-agent: 9\ndisallow: *a$b*\nallow: $", "", "a?a$bc://"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, body, agent, url string) {
		if len(body) > 1<<12 || len(url) > 1<<10 {
			return // the reference is slow
		}
		file := Parse([]byte(body), GoogleOSS)
		got := file.RulesFor(AgentFromName(agent)).CheckRawURL(url)
		want := ossReference{agent: agent, path: googleOSSPath(url)}
		if got.Allowed == want.disallows(file.lines) {
			t.Errorf("%q\nagent %q, URL %q: got %+v, want the other", body, agent, url, got)
		}
		if (got.Rule == "") != (got.Line == 0) || !got.Allowed && !strings.HasPrefix(got.Rule, "disallow: ") {
			t.Errorf("%q\nagent %q, URL %q: %+v", body, agent, url, got)
		}
	})
}
