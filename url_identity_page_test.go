package decorum_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
)

var (
	ruleHeading = regexp.MustCompile(`^## (\d+\..*)`)
	exampleRow  = regexp.MustCompile("^\\| `(.*)` \\|(?: `(.*)`)? \\| (?:`(.*)`|refused: (.*)) \\|$")
)

// TestIdentityPage proves that ParseURL and Resolve agree with every example in docs/url-identity.md.
func TestIdentityPage(t *testing.T) {
	text, err := os.ReadFile("docs/url-identity.md")
	if err != nil {
		t.Fatal(err)
	}
	section, examples := "", map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := ruleHeading.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		m := exampleRow.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "| `") {
				t.Errorf("not understood: %s", line)
			}
			continue
		}
		examples[section]++
		checkExample(t, section, resolveCase{base: m[2], ref: m[1], want: m[3]}, m[4])
	}
	if len(examples) != 11 {
		t.Errorf("%d rules have examples, want 11: %v", len(examples), examples)
	}
}

func checkExample(t *testing.T, section string, l resolveCase, refused string) {
	t.Helper()
	u, err := l.resolve(t)
	if refused == "" {
		if err != nil || u.String() != l.want {
			t.Errorf("rule %s: %q on %q: got %q, %v; want %q", section, l.ref, l.base, u, err, l.want)
		}
		return
	}
	var e *decorum.Error
	if !errors.As(err, &e) || e.Err.Error() != refused {
		t.Errorf("rule %s: %q on %q: got %q, %v; want it refused: %s", section, l.ref, l.base, u, err, refused)
	}
}
