package api

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestDiffRobots(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"the same", "a\nb\n", "a\nb\n", " 1:1 a| 2:2 b"},
		{"ends of lines", "a\r\nb\rc", "a\nb\nc\n", " 1:1 a| 2:2 b| 3:3 c"},
		{"a line more", "a\nc\n", "a\nb\nc\n", " 1:1 a|+0:2 b| 2:3 c"},
		{"a line less", "a\nb\nc", "a\nc", " 1:1 a|-2:0 b| 3:2 c"},
		{"a line changed", "a\nb\nc", "a\nB\nc", " 1:1 a|-2:0 b|+0:2 B| 3:3 c"},
		{"all is new", "", "a\n\nb", "+0:1 a|+0:2 |+0:3 b"},
		{"all is gone", "a\nb", "", "-1:0 a|-2:0 b"},
	} {
		d := DiffRobotsLines(&RobotsFile{SHA256: "o", Text: tt.old}, &RobotsFile{SHA256: "n", Text: tt.new})
		var got []string
		added, removed := 0, 0
		for _, l := range d.Lines {
			mark := map[string]string{LineSame: " ", LineAdded: "+", LineRemoved: "-"}[l.Kind]
			added += strings.Count(mark, "+")
			removed += strings.Count(mark, "-")
			got = append(got, fmt.Sprintf("%s%d:%d %s", mark, l.OldLine, l.NewLine, l.Text))
		}
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
		if d.OldSHA256 != "o" || d.NewSHA256 != "n" || d.AddedLineCount != added ||
			d.RemovedLineCount != removed || d.UncomparedLines != 0 {
			t.Errorf("%s: %+v", tt.name, d)
		}
	}
}

// The difference of two files contains both of them completely, however many lines differ.
func TestDiffRobotsIsWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(lines, words int) string {
		var b strings.Builder
		for range lines {
			fmt.Fprintf(&b, "Disallow: /%d\n", random.IntN(words))
		}
		return b.String()
	}
	for _, tt := range []struct{ lines, words int }{{10, 3}, {200, 10}, {3000, 2}, {3000, 100},
		{50_000, 10}, {110_000, 1 << 30}} {
		old, new := text(tt.lines, tt.words), text(tt.lines, tt.words)
		d := DiffRobotsLines(&RobotsFile{Text: old}, &RobotsFile{Text: new})
		var before, after []string
		for _, l := range d.Lines {
			if l.Kind != LineAdded {
				if before = append(before, l.Text); l.OldLine != len(before) {
					t.Fatalf("%d lines: %+v is line %d of the old file", tt.lines, l, len(before))
				}
			}
			if l.Kind != LineRemoved {
				if after = append(after, l.Text); l.NewLine != len(after) {
					t.Fatalf("%d lines: %+v is line %d of the new file", tt.lines, l, len(after))
				}
			}
		}
		compared := min(tt.lines, maxDiffLines)
		if !slices.Equal(before, strings.Split(old, "\n")[:compared]) ||
			!slices.Equal(after, strings.Split(new, "\n")[:compared]) {
			t.Errorf("%d lines: the difference does not contain both files", tt.lines)
		}
		if want := 2 * (tt.lines - compared); d.UncomparedLines != want {
			t.Errorf("%d lines: %d were not compared, want %d", tt.lines, d.UncomparedLines, want)
		}
	}
}

// BenchmarkDiffRobots compares files of the largest size that is kept: all lines differ, all lines
// are the same, and as many lines as such a file can have.
func BenchmarkDiffRobots(b *testing.B) {
	numberedLines := func(format string, lines int) string {
		var t strings.Builder
		for i := range lines {
			fmt.Fprintf(&t, format, i)
		}
		return t.String()
	}
	for name, texts := range map[string][2]string{
		"other": {numberedLines("Disallow: /a%d\n", 30_000), numberedLines("Disallow: /b%d\n", 30_000)},
		"same":  {numberedLines("Disallow: /a%d\n", 30_000), numberedLines("Disallow: /a%d\n", 30_000)},
		"short": {strings.Repeat("a\nb\n", 125_000), strings.Repeat("b\nb\na\n", 83_000)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				DiffRobotsLines(&RobotsFile{Text: texts[0]}, &RobotsFile{Text: texts[1]})
			}
		})
	}
}
