package collyfetch_test

import (
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/decorum-crawler/decorum/crawler/collyfetch"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

// TestInvalidAgent: Wrap refuses an agent that is invalid in a header, or with which servers would
// refuse every request.
func TestInvalidAgent(t *testing.T) {
	long := strings.Repeat("x", httpheader.MaxProductBytes+1)
	for _, agent := range []string{long, "bot/" + long, "bot/1\x7f", "bot/1\n", "bot/\u00fc"} {
		if c, err := collyfetch.Wrap(colly.NewCollector(),
			collyfetch.WrapOptions{Agent: agent, Contact: "mailto:bot@example.com"}); err == nil {
			t.Errorf("agent %q is taken", agent)
			c.Close()
		}
	}
}
