// Package table prints the tables of the programs that measure: columns aligned on the right,
// two spaces apart.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table collects rows and aligns them when it is flushed. A line that is written to it with a
// tab after each cell is a row, too.
type Table struct{ *tabwriter.Writer }

// New returns a table that Flush prints to out. The columns are its first row; without columns it
// has none.
func New(out io.Writer, columns ...string) *Table {
	t := &Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
	if len(columns) > 0 {
		fmt.Fprintln(t, strings.Join(columns, "\t")+"\t")
	}
	return t
}

// Row adds a row. Without cells it is an empty line.
func (t *Table) Row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(t, "%v\t", c)
	}
	fmt.Fprintln(t)
}
