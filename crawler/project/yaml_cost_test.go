package project

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// costlyTexts are YAML texts of about n bytes whose cost in the lexer or the parser is not
// proportional to their length. Each is refused with wantErr.
var costlyTexts = []struct {
	name, wantErr string
	text          func(n int) string
}{
	{"brackets over lines", "nested more than 32 deep", func(n int) string {
		return "a:\n  " + strings.Repeat("- [\n", n/4)
	}},
	{"brackets in a line", "nested more than 32 deep", func(n int) string {
		return "seeds: " + strings.Repeat("[", n)
	}},
	{"brackets that are closed", "nested more than 32 deep", func(n int) string {
		return "seeds: " + strings.Repeat("[", n/2) + strings.Repeat("]", n/2)
	}},
	{"braces", "nested more than 32 deep", func(n int) string { return strings.Repeat("a: {\n", n/5) }},
	{"brackets after items", "nested more than 32 deep", func(n int) string {
		return strings.Repeat("- - - - [\n", n/10)
	}},
	{"dashes in a line", "nested more than 32 deep", func(n int) string { return strings.Repeat("- ", n/2) }},
	{"question marks", "nested more than 32 deep", func(n int) string { return strings.Repeat("? ", n/2) }},
	{"indentation", "nested more than 32 deep", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}},
	{"keys", "more than 5000 entries", func(n int) string { return manyLines(n, "k%d: 1\n") }},
	{"keys in braces", "more than 5000 entries", func(n int) string {
		return "fetch: {headers: {" + manyLines(n/2, "k%d: 1,") + "}}"
	}},
	{"keys of many mappings", "more than 20000 keys", func(n int) string {
		return "a:\n" + manyLines(2*n, "- {a: 1, b: 2, c: 3, d: 4, e: %d}\n")
	}},
	{"keys without a value", "have no value", func(n int) string { return manyLines(n, "k%d:\n") }},
	{"names in braces", "have no value", func(n int) string {
		return "fetch: {headers: {" + manyLines(n/2, "k%d,") + "}}"
	}},
	{"items without a value", "have no value", func(n int) string { return "seeds:\n" + strings.Repeat("-\n", n/4) }},
	{"long names around a list", "longer than 1024 bytes together", func(n int) string {
		return strings.Repeat("a", 1000) + ": {" + strings.Repeat("b", 1000) + ": [" + strings.Repeat("c,", n/8) + "]}"
	}},
	{"aliases", "anchors, aliases and tags", func(n int) string {
		return "seeds: [&a b]\nx:\n" + strings.Repeat("- *a\n", n/8)
	}},
	{"lists of aliases", "anchors, aliases and tags", func(int) string {
		var b strings.Builder
		b.WriteString("a0: &a0 [x, x]\n")
		for i := 1; i < 64; i++ {
			fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
		}
		return b.String()
	}},
	{"tags", "anchors, aliases and tags", func(n int) string { return strings.Repeat("- !!str a\n", n/16) }},
	{"a long value", "longer than 65536 bytes", func(n int) string { return "handler: " + strings.Repeat("b", n) }},
	{"a long block", "longer than 65536 bytes", func(n int) string {
		return "handler: |\n" + strings.Repeat("  bbbbbb\n", n/9)
	}},
	{"documents", "here another begins", func(n int) string { return strings.Repeat("---\n", n/16) }},
	{"tabs in quotes", "more than 256 tabs", func(n int) string {
		return `handler: "` + strings.Repeat("\t", n) + `x"`
	}},
	{"less-than signs", "more than 256 <", func(n int) string { return "handler: " + strings.Repeat("<", n) }},
	{"blank lines behind a block", "more than 256 blank lines", func(n int) string {
		return "handler: |\n" + strings.Repeat("  b\n", n/8) + strings.Repeat(" \r\n", n/8)
	}},
}

// manyLines returns about n bytes of lines, with the line's number in place of the %d of format.
func manyLines(n int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// maxYAMLCost is how many bytes reading a project file may allocate per byte of the file, in
// addition to maxYAMLBase. Nearly all of them are garbage at once.
const maxYAMLCost, maxYAMLBase = 400, 4 << 20

// TestCostlyProjects: each of costlyTexts is refused at a cost proportional to its length.
func TestCostlyProjects(t *testing.T) {
	for _, tt := range costlyTexts {
		for _, n := range []int{100_000, 400_000} {
			text := tt.text(n)
			var err error
			cost := allocatedBytes(func() { _, err = ParseFile("p.yaml", []byte(text)) })
			switch {
			case err == nil, n == 100_000 && !strings.Contains(err.Error(), tt.wantErr):
				t.Errorf("%s, %d bytes: %.300v; want %q", tt.name, len(text), err, tt.wantErr)
			}
			if maxBytes := uint64(maxYAMLCost*len(text) + maxYAMLBase); cost > maxBytes {
				t.Errorf("%s, %d bytes: reading it allocated %d MB; want at most %d", tt.name,
					len(text), cost>>20, maxBytes>>20)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%s: the error has %d bytes", tt.name, len(err.Error()))
			}
		}
	}
}

// allocatedBytes returns how many bytes do allocates.
func allocatedBytes(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestLargeProjects: large but ordinary files stay within the limits.
func TestLargeProjects(t *testing.T) {
	hosts := "politeness:\n  hosts:\n" +
		manyLines(200_000, "    host%d.example:\n      delay: 2s\n      reason: asked by mail\n")
	for name, text := range map[string]string{
		"seeds in lines": "seeds:\n" + manyLines(900_000, "  - https://example.com/a,b/%d.html?x=1&y=2#z\n"),
		"short seeds":    "seeds:\n" + manyLines(900_000, "- http://a.io/%d\n"),
		"seeds as JSON": `{"seeds": [` +
			strings.TrimSuffix(manyLines(900_000, `"https://example.com/%d",`), ",") + "]}",
		"seeds in brackets": "seeds: [" + manyLines(400_000, "https://example.com/%d, ") + "https://example.com/]",
		"hosts":             hosts,
		"patterns": "scope:\n  exclude:\n" +
			manyLines(200_000, "    - '^https://[a-z]+\\.example/%d/(a|b){1,2}$'\n"),
		"comments": manyLines(400_000, "# note %d: with [brackets], {braces} & * marks\n") +
			"seeds: [http://a.example/]\n",
		"Windows's lines": strings.ReplaceAll("# a\n\n\nseeds:\n"+manyLines(400_000, "  - http://a.example/%d\n"),
			"\n", "\r\n"),
		"paragraphs of blank": strings.Repeat("# a\n"+strings.Repeat("\n", 100), 50) + "seeds: [http://a.example/]\n",
	} {
		var err error
		cost := allocatedBytes(func() { _, err = ParseFile("p.yaml", []byte(text)) })
		if err != nil {
			t.Errorf("%s, %d bytes: %.300v", name, len(text), err)
		}
		if maxBytes := uint64(maxYAMLCost*len(text) + maxYAMLBase); cost > maxBytes {
			t.Errorf("%s, %d bytes: reading it allocated %d MB; want at most %d", name,
				len(text), cost>>20, maxBytes>>20)
		}
	}
}

// TestExceededLimitPosition: the error for an exceeded limit names its line and column.
func TestExceededLimitPosition(t *testing.T) {
	_, err := ParseFile("p.yaml", []byte("agent: {product: ü}\nseeds: [ü, "+strings.Repeat("[", 40)))
	if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:2:42: lists and mappings are nested more than 32 deep") {
		t.Error(err)
	}
	_, err = ParseFile("p.yaml", []byte("a: 1\r\nü: \""+strings.Repeat("\t", 300)))
	if err == nil || !strings.HasPrefix(err.Error(), "p.yaml:2:261: the line has more than 256 tabs") {
		t.Error(err)
	}
}

// FuzzYAMLLimits: parsing a text within the limits has a cost proportional to its length.
func FuzzYAMLLimits(f *testing.F) {
	sample, err := os.ReadFile("testdata/project.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sample))
	for _, tt := range costlyTexts {
		f.Add(tt.text(200))
		f.Add(tt.text(3000))
	}
	for _, text := range []string{"%a b c d", "\"\\q\\q", "- %a b c\n", "...&a", "--- a\n... b", "<<: <<: a", "\t\t\ta",
		"? ? a\n: b", "{a, b, : c}", "!a!b !", "@ ` @"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		cost := allocatedBytes(func() { _, _ = ParseFile("p.yaml", []byte(text)) })
		if maxBytes := uint64(4*maxYAMLCost*len(text) + maxYAMLBase); cost > maxBytes {
			t.Errorf("reading %d bytes allocated %d MB; want at most %d: %.400q", len(text),
				cost>>20, maxBytes>>20, text)
		}
	})
}
