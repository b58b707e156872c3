package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestCurve: a curve in each order has a row for each of its points, with figures that are not 0.
func TestCurve(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a curve needs /proc")
	}
	for _, order := range []string{"paged", "scattered"} {
		p := runOptions{Order: order, Origins: 100, StoreFile: filepath.Join(t.TempDir(), "frontier.db"),
			CurvePoints: []int{1000, 3000}}
		var out bytes.Buffer
		if err := runCurve(p, &out, 1<<20); err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(rows) != 2 {
			t.Fatalf("%s: %d rows, want 2:\n%s", order, len(rows), &out)
		}
		for i, row := range rows {
			cells := strings.Fields(row)
			if len(cells) != len(curveColumns) || cells[0] != order || cells[1] != fmt.Sprint(p.CurvePoints[i]) {
				t.Errorf("row %q, want %d cells, the first two %s and %d", row, len(curveColumns), order,
					p.CurvePoints[i])
			}
			for _, column := range []string{"new/s", "seen/s", "written B/URL", "disk B/URL", "anon RSS MiB"} {
				at := slices.IndexFunc(curveColumns, func(c string) bool { return strings.TrimSpace(c) == column })
				if cells[at] == "0" {
					t.Errorf("row %q: %s is 0", row, column)
				}
			}
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(p.StoreFile), "disk-*")); len(left) > 0 || err != nil {
			t.Errorf("files %v (%v) are left", left, err)
		}
	}
}

// TestIsAscending: points that repeat, descend or are 0 are refused.
func TestIsAscending(t *testing.T) {
	for _, tt := range []struct {
		points []int
		want   bool
	}{{[]int{50, 100}, true}, {[]int{50, 50}, false}, {[]int{100, 50}, false}, {[]int{0, 50}, false}} {
		if got := isAscending(tt.points); got != tt.want {
			t.Errorf("%v: %t, want %t", tt.points, got, tt.want)
		}
	}
}

// TestParseSizes: sizes are rounded up to whole pages.
func TestParseSizes(t *testing.T) {
	if got, err := parseSizes("1,50,51"); err != nil || !slices.Equal(got, []int{50, 50, 100}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseSizes("1,x"); err == nil {
		t.Error("no error for x")
	}
}
