package project

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
)

// TestPatternLimits: too many patterns, or patterns whose programs would be too large together, are
// refused before they are compiled.
func TestPatternLimits(t *testing.T) {
	repeated := func(n int) []string { return slices.Repeat([]string{"x{1000}"}, n) }
	for _, tt := range []struct {
		name             string
		include, exclude []string
		field, says      string
	}{
		{"repetitions", nil, repeated(4000), "scope.exclude[", "take more than 16 MiB when compiled"},
		{"repetitions in both lists", repeated(300), repeated(300), "scope.exclude[",
			"take more than 16 MiB when compiled"},
		{"nested repetitions", nil, slices.Repeat([]string{"((ab){30}c{3}){30}"}, 4900), "scope.exclude[",
			"take more than 16 MiB when compiled"},
		{"classes", slices.Repeat([]string{strings.Repeat(`\pL\PL`, 100)}, 100), nil, "scope.include[",
			"take more than 16 MiB when compiled"},
		{"many", nil, slices.Repeat([]string{"a"}, 5001), "scope.exclude[5000]", "more than 5000 regular expressions"},
		{"one that is long", nil, []string{"a", strings.Repeat("a", 20_000)}, "scope.exclude[1]",
			"longer than 16384 bytes"},
	} {
		p := Default()
		p.Scope.Include, p.Scope.Exclude = tt.include, tt.exclude
		var f []FieldProblem
		cost := allocatedBytes(func() { f = checkedBy(checkScopeSettings, &p) })
		if len(f) != 1 || !strings.HasPrefix(f[0].FieldPath, tt.field) || !strings.Contains(f[0].Problem, tt.says) {
			t.Errorf("%s: %.300v; want %s: %s", tt.name, f, tt.field, tt.says)
		}
		if cost > 10*maxProgramsSize {
			t.Errorf("%s: the check allocated %d MB; want at most %d", tt.name, cost>>20, 10*maxProgramsSize>>20)
		}
		if _, err := p.ScopeConfig(); err == nil {
			t.Errorf("%s: ScopeConfig returns no error", tt.name)
		}
	}
}

// TestManyPatterns: 3,000 ordinary patterns and one of 1,000 alternatives stay within the limits.
func TestManyPatterns(t *testing.T) {
	p := Default()
	for i := range 3000 {
		p.Scope.Exclude = append(p.Scope.Exclude,
			fmt.Sprintf(`^https?://www\.shop%d\.example/(cart|login)/.*[?&]s=[0-9a-f]{32}$`, i))
	}
	p.Scope.Include = []string{"^https://(" + strings.Repeat(`[a-z]+\.example|`, 1000) + "x)/"}
	if f := checkedBy(checkScopeSettings, &p); len(f) > 0 {
		t.Errorf("%.300v", f)
	}
	scope, err := p.ScopeConfig()
	if err != nil || len(scope.Exclude) != 3000 || len(scope.Include) != 1 {
		t.Errorf("%d and %d patterns, %.300v", len(scope.Include), len(scope.Exclude), err)
	}
}

// FuzzProgramSize: regexpProgramSize is at least the size of the pattern's compiled program.
func FuzzProgramSize(f *testing.F) {
	for _, pattern := range []string{
		"", "a", "abc|def", "x{1000}", "(a{3,}b{2,5}c?){7}", `\pL+[^\d]*?`, "(?i)straße", "(((a)*)+)?",
		"a{0}", "a{0,1}", "(|a|b){10}",
		"^$|\\b.(?s:.)", "x{2,}{3}", "(?:){1000}", "[a-z&&]{20}", "(?i)k{1000}", "(a|ab|abc|abd){30}",
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return
		}
		maxSize := regexpProgramSize(tree)
		if maxSize > 1<<24 {
			return
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			return
		}
		size := 0
		for _, i := range program.Inst {
			size += instructionSize + runeSize*len(i.Rune)
		}
		if size > maxSize {
			t.Errorf("%q: the program has %d bytes, and %d were computed", pattern, size, maxSize)
		}
	})
}

// TestPatternSyntax: the error for an invalid pattern is a *syntax.Error.
func TestPatternSyntax(t *testing.T) {
	_, err := newRegexpBudget().compile("(")
	if e := (*syntax.Error)(nil); !errors.As(err, &e) {
		t.Errorf("%T: %v", err, err)
	}
}
