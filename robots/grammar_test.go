package robots

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A robotsGenerator writes files by the grammar of RFC 9309, section 2.2, and keeps what they
// say.
type robotsGenerator struct {
	*rand.Rand
	text         strings.Builder
	lineCount    int
	openTokens   map[string]bool     // whom the next rule is for
	groupTokens  map[string]bool     // product tokens that have a group, in lower case
	rulesByToken map[string][]string // by product token: "line rule"
}

func (p *robotsGenerator) pickOne(of ...string) string { return of[p.IntN(len(of))] }

func (p *robotsGenerator) randomBlanks() string {
	return strings.Repeat(p.pickOne(" ", "\t"), p.IntN(3))
}

// randomChars returns up to n of the characters.
func (p *robotsGenerator) randomChars(n int, of string) string {
	all, s := []rune(of), ""
	for range p.IntN(n + 1) {
		s += string(all[p.IntN(len(all))])
	}
	return s
}

// characters are of UTF8-char-noctl, of one byte to four.
const characters = "/abcXYZ019!\"$%&'()*+,-.:;<=>?@[\\]^_`{|}~éЖ日😀"

// writeLineEnd writes EOL.
func (p *robotsGenerator) writeLineEnd() {
	comment := ""
	if p.IntN(3) == 0 {
		comment = "#" + p.randomChars(5, characters+" \t#")
	}
	p.text.WriteString(p.randomBlanks() + comment + p.pickOne("\n", "\r", "\r\n"))
	p.lineCount++
}

// writeEmptyLines writes some empty lines, none of which begins with a line feed that might
// belong to the carriage return before it.
func (p *robotsGenerator) writeEmptyLines() {
	for range p.IntN(3) {
		p.text.WriteString(" ")
		p.writeLineEnd()
	}
}

func (p *robotsGenerator) writeLine(field, value string) (number int) {
	number = p.lineCount + 1
	p.text.WriteString(p.randomBlanks() + field + p.randomBlanks() + ":" + p.randomBlanks() + value)
	p.writeLineEnd()
	return number
}

// writeGroup writes a group, and notes its rules for each of its tokens. Those of a group
// without rules share what follows it.
func (p *robotsGenerator) writeGroup() {
	for range 1 + p.IntN(3) {
		token := p.pickOne("*", "foobot", "FooBot", "foo_bot", "Foo-Bot", "foo")
		p.writeLine(p.pickOne("user-agent", "User-Agent", "USER-AGENT"), token)
		p.openTokens[strings.ToLower(token)] = true
		p.writeEmptyLines()
	}
	maps.Copy(p.groupTokens, p.openTokens)
	rules := p.IntN(4)
	for i := 1; i <= rules; i++ {
		field, path := p.pickOne("allow", "disallow"), ""
		if p.IntN(6) > 0 {
			path = "/" + p.randomChars(6, characters)
		}
		number := p.writeLine(p.pickOne(field, strings.ToUpper(field)), path)
		p.writeEmptyLines()
		for token := range p.openTokens {
			if path != "" {
				p.rulesByToken[token] = append(p.rulesByToken[token], fmt.Sprintf("%d %s: %s", number, field, path))
			}
		}
		if i == rules {
			clear(p.openTokens)
		}
	}
}

// TestGrammar: what the grammar of the standard lets a file say is read, all of it
// and nothing else (SYN-17).
func TestGrammar(t *testing.T) {
	for seed := range uint64(2000) {
		p := robotsGenerator{Rand: rand.New(rand.NewPCG(seed, 9309)), openTokens: map[string]bool{}, groupTokens: map[string]bool{}, rulesByToken: map[string][]string{}}
		p.writeEmptyLines()
		for range p.IntN(5) {
			p.writeGroup()
		}
		for _, name := range []string{"foobot", "foo_bot", "Foo-bot", "foo", "bar"} {
			token := strings.ToLower(name)
			if !p.groupTokens[token] {
				token = "*"
			}
			for _, d := range []Dialect{Google, GoogleOSS} {
				var got []string
				for _, r := range Parse([]byte(p.text.String()), d).RulesFor(AgentFromName(name)).Lines() {
					got = append(got, fmt.Sprintf("%d %s: %s", r.Number, r.Field, r.Value))
				}
				if !slices.Equal(got, p.rulesByToken[token]) {
					t.Fatalf("seed %d, %v, %s\n%q\n got %q\nwant %q", seed, d, name, p.text.String(), got, p.rulesByToken[token])
				}
			}
		}
	}
}
