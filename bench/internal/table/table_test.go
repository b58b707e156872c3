package table

import (
	"bytes"
	"fmt"
	"testing"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table := New(&out, "name", "n")
	table.Row("first", 1)
	fmt.Fprintf(table, "%s\t%.1f\t\n", "b", 10.25)
	table.Row()
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "   name     n\n  first     1\n      b  10.2\n\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	out.Reset()
	if err := New(&out).Flush(); err != nil || out.Len() > 0 {
		t.Errorf("a table without rows is %q, %v", &out, err)
	}
}
