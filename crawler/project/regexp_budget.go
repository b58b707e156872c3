package project

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Limits of the regular expressions of a project, all lists together. The crawl matches a URL
// against each of them, in time proportional to the size of the compiled program. The limits are
// constants because they protect the process that compiles the patterns.
const (
	maxPatterns      = 5000
	maxPatternLength = 16 << 10 // bytes of one pattern: the parser may allocate 5 KB per byte
	maxProgramsSize  = 16 << 20 // bytes of all programs: 3,000 patterns of some 100 characters each
)

// instructionSize and runeSize are the bytes of an instruction of a program and of a rune in one.
const instructionSize, runeSize = 40, 4

// A regexpBudget is the unused part of maxPatterns and maxProgramsSize.
type regexpBudget struct{ regexpsLeft, programBytesLeft int }

// newRegexpBudget returns the budget of a project.
func newRegexpBudget() *regexpBudget { return &regexpBudget{maxPatterns, maxProgramsSize} }

// compile compiles a pattern (RE2). Before that, it computes the size of the program from the syntax
// tree and subtracts it from the budget. It returns an error if the budget is exceeded.
func (b *regexpBudget) compile(pattern string) (*regexp.Regexp, error) {
	if b.regexpsLeft--; b.regexpsLeft < 0 {
		return nil, fmt.Errorf("there are more than %d regular expressions; join some with |, or leave some out",
			maxPatterns)
	}
	if len(pattern) > maxPatternLength {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes; split it", maxPatternLength)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if b.programBytesLeft -= regexpProgramSize(tree); b.programBytesLeft < 0 {
		return nil, fmt.Errorf("the regular expressions up to this one take more than %d MiB when compiled; "+
			"use fewer or smaller repetitions such as {1000}", maxProgramsSize>>20)
	}
	return regexp.Compile(pattern)
}

// compileAll compiles patterns, and returns the first error.
func (b *regexpBudget) compileAll(patterns []string) ([]*regexp.Regexp, error) {
	compiled := make([]*regexp.Regexp, len(patterns))
	for i, pattern := range patterns {
		var err error
		if compiled[i], err = b.compile(pattern); err != nil {
			return nil, err
		}
	}
	return compiled, nil
}

// regexpProgramSize returns an upper bound of the size of a pattern's program, in bytes: its
// instructions and their runes.
func regexpProgramSize(tree *syntax.Regexp) int {
	const frameInstructions = 3 // the instructions that begin, fail and match
	return regexpSubprogramSize(tree) + frameInstructions*instructionSize
}

// regexpSubprogramSize returns an upper bound of the bytes that part of a pattern takes in the
// program. The recursion ends and the product fits an int, because the parser refuses more than 1000
// repetitions, nested ones multiplied, and trees deeper than 1000.
func regexpSubprogramSize(re *syntax.Regexp) int {
	// Begin with the sum of the parts; an operator without parts replaces it below.
	size := 0
	for _, sub := range re.Sub {
		size += regexpSubprogramSize(sub)
	}
	switch re.Op {
	case syntax.OpLiteral: // one instruction per rune
		size = len(re.Rune) * (instructionSize + runeSize)
	case syntax.OpCharClass:
		size = instructionSize + len(re.Rune)*runeSize
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL: // a class of one or two ranges
		size = instructionSize + 4*runeSize
	case syntax.OpAlternate:
		size += len(re.Sub) * instructionSize
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		size += 2 * instructionSize
	case syntax.OpRepeat: // x{2,} is xx+, and x{2,4} is xx(x(x)?)?
		size = max(re.Min, re.Max, 1)*size + (max(0, re.Max-re.Min)+2)*instructionSize
	}
	return max(size, instructionSize)
}
