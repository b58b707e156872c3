package yamllimit

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml/lexer"
)

// tokenCountUpperBound is at least the number of tokens of the lexer.
func FuzzTokenCount(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb: [c, 'd']\n", "seeds:\n- http://a.example/\n", "a: |\n  b\n\n\nc: {d: e}\n",
		strings.Repeat("- - - [\n", 40),
		"%a b c d", "\"\\q\\q", "- %a b c\n", "...&a", "--- a\n... b", "<<: <<: a", "\t\t\ta", "? ? a\n: b",
		"{a, b, : c}", "!a!b !", "@ ` @",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 || checkText(text) != nil {
			return
		}
		s := &lexerCostScanner{text: text, lineNumber: 1, lineIsBlank: true}
		for i := range len(text) {
			s.scanByte(i)
		}
		if tokens := lexer.Tokenize(text); len(tokens) > s.tokenCountUpperBound+1 {
			t.Errorf("%d tokens, want at most %d: %q", len(tokens), s.tokenCountUpperBound, text)
		}
	})
}
