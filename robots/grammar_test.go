package robots

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A phrase writes files by the grammar of RFC 9309, section 2.2, and keeps what they
// say.
type phrase struct {
	*rand.Rand
	text   strings.Builder
	lines  int
	tokens map[string]bool     // whom the next rule is for
	named  map[string]bool     // product tokens that have a group, in lower case
	rules  map[string][]string // by product token: "line rule"
}

func (p *phrase) one(of ...string) string { return of[p.IntN(len(of))] }

func (p *phrase) space() string { return strings.Repeat(p.one(" ", "\t"), p.IntN(3)) }

// some returns up to n of the characters.
func (p *phrase) some(n int, of string) string {
	all, s := []rune(of), ""
	for range p.IntN(n + 1) {
		s += string(all[p.IntN(len(all))])
	}
	return s
}

// characters are of UTF8-char-noctl, of one byte to four.
const characters = "/abcXYZ019!\"$%&'()*+,-.:;<=>?@[\\]^_`{|}~éЖ日😀"

// end writes EOL.
func (p *phrase) end() {
	comment := ""
	if p.IntN(3) == 0 {
		comment = "#" + p.some(5, characters+" \t#")
	}
	p.text.WriteString(p.space() + comment + p.one("\n", "\r", "\r\n"))
	p.lines++
}

// empty writes some empty lines, none of which begins with a line feed that might
// belong to the carriage return before it.
func (p *phrase) empty() {
	for range p.IntN(3) {
		p.text.WriteString(" ")
		p.end()
	}
}

func (p *phrase) writeLine(field, value string) (number int) {
	number = p.lines + 1
	p.text.WriteString(p.space() + field + p.space() + ":" + p.space() + value)
	p.end()
	return number
}

// group writes a group, and notes its rules for each of its tokens. Those of a group
// without rules share what follows it.
func (p *phrase) group() {
	for range 1 + p.IntN(3) {
		token := p.one("*", "foobot", "FooBot", "foo_bot", "Foo-Bot", "foo")
		p.writeLine(p.one("user-agent", "User-Agent", "USER-AGENT"), token)
		p.tokens[strings.ToLower(token)] = true
		p.empty()
	}
	maps.Copy(p.named, p.tokens)
	rules := p.IntN(4)
	for i := 1; i <= rules; i++ {
		field, path := p.one("allow", "disallow"), ""
		if p.IntN(6) > 0 {
			path = "/" + p.some(6, characters)
		}
		number := p.writeLine(p.one(field, strings.ToUpper(field)), path)
		p.empty()
		for token := range p.tokens {
			if path != "" {
				p.rules[token] = append(p.rules[token], fmt.Sprintf("%d %s: %s", number, field, path))
			}
		}
		if i == rules {
			clear(p.tokens)
		}
	}
}

// TestGrammar: what the grammar of the standard lets a file say is read, all of it
// and nothing else (SYN-17).
func TestGrammar(t *testing.T) {
	for seed := range uint64(2000) {
		p := phrase{Rand: rand.New(rand.NewPCG(seed, 9309)), tokens: map[string]bool{}, named: map[string]bool{}, rules: map[string][]string{}}
		p.empty()
		for range p.IntN(5) {
			p.group()
		}
		for _, name := range []string{"foobot", "foo_bot", "Foo-bot", "foo", "bar"} {
			token := strings.ToLower(name)
			if !p.named[token] {
				token = "*"
			}
			for _, d := range []Dialect{Google, GoogleOSS} {
				var got []string
				for _, r := range Parse([]byte(p.text.String()), d).For(Named(name)).all {
					got = append(got, fmt.Sprintf("%d %s", r.line, r.text))
				}
				if !slices.Equal(got, p.rules[token]) {
					t.Fatalf("seed %d, %v, %s\n%q\n got %q\nwant %q", seed, d, name, p.text.String(), got, p.rules[token])
				}
			}
		}
	}
}
