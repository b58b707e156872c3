package cli

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// A textBuilder is text for people, in the making.
type textBuilder struct{ bytes.Buffer }

func (s *textBuilder) writeLine(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// writeTable writes rows in columns.
func (s *textBuilder) writeTable(rows func(row func(cells ...any))) {
	t := tabwriter.NewWriter(s, 0, 0, 2, ' ', 0)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(t, strings.Join(texts, "\t"))
	})
	t.Flush() // into memory: it cannot fail
}
