// Package table prints the tables of the benchmark programs: columns aligned on the right, two
// spaces apart. Begin reading at New.
package table

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table collects rows. Flush aligns and prints them. A line that is written to the Table, with a
// tab after each cell, is a row, too.
type Table struct{ *tabwriter.Writer }

// New returns a Table that Flush prints to out. columns is its first row; without columns the Table
// is empty.
func New(out io.Writer, columns ...string) *Table {
	t := &Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
	if len(columns) > 0 {
		fmt.Fprintln(t, strings.Join(columns, "\t")+"\t")
	}
	return t
}

// Row adds a row. A row without cells is an empty line.
func (t *Table) Row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(t, "%v\t", c)
	}
	fmt.Fprintln(t)
}
