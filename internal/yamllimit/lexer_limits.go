package yamllimit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of a YAML text before the lexer reads it. The lexer allocates some 300 bytes
// a token, and its time grows with the square of what the last three limits bound. They
// are constants because they protect the process that reads the file, and a crawl needs
// no file that comes near them.
const (
	// MaxTokens bounds the tokens. A list of 50,000 seeds has 100,000.
	MaxTokens = 250_000
	// maxTabs bounds the tabs of a line: in quotes, each makes the lexer look ahead
	// to the end of the line.
	maxTabs = 256
	// maxAngles bounds the "<" in a row: each makes the lexer count those that follow.
	maxAngles = 256
	// maxBlankLines bounds the blank lines in a row: at the end of a block of text,
	// each makes the lexer copy the block.
	maxBlankLines = 256
)

// A Violation is the place where a YAML text exceeds a limit, and what to say of it.
type Violation struct {
	Line, Column int // counted from 1, in characters
	Problem      string
}

// A lexerCostScanner counts, byte by byte, what the lexer would make of a text.
type lexerCostScanner struct {
	text string

	tokenCountUpperBound int  // at least as many as the lexer makes tokens
	lineNumber           int  // number of the line, from 1
	lineStart            int  // where the line starts
	lineIsBlank          bool // the line has held nothing but blanks so far
	blankLinesInRow      int  // in a row, up to the line
	tabsInLine           int  // of the line
	angleBracketsInRow   int  // "<" in a row
	lineIsDirective      bool // the line may be a directive, whose words are tokens
	lineIsComment        bool // the line is a comment, or text within quotes or a block
	sawBrace             bool // a "{" was seen: a colon may end a key without a blank behind it
}

// checkText returns the first excess of a text; nil if the lexer needs time and
// memory in proportion to its length. It ignores quotes and comments, and so counts too
// many tokens rather than too few.
func checkText(text string) *Violation {
	s := &lexerCostScanner{text: text, lineNumber: 1, lineIsBlank: true}
	for i := range len(text) {
		s.scanByte(i)
		problem := ""
		switch {
		case s.tokenCountUpperBound > MaxTokens:
			problem = fmt.Sprintf("the file has more than %d values and marks; put long lists of seeds into seed_files",
				MaxTokens)
		case s.tabsInLine > maxTabs:
			problem = fmt.Sprintf("the line has more than %d tabs; write blanks, or several lines", maxTabs)
		case s.angleBracketsInRow > maxAngles:
			problem = fmt.Sprintf("there are more than %d < in a row; leave them out", maxAngles)
		case s.blankLinesInRow > maxBlankLines:
			problem = fmt.Sprintf("there are more than %d blank lines in a row; leave them out", maxBlankLines)
		}
		if problem != "" {
			return &Violation{s.lineNumber, utf8.RuneCountInString(text[min(s.lineStart, i):i]) + 1, problem}
		}
	}
	return nil
}

// scanByte counts the byte at i.
func (s *lexerCostScanner) scanByte(i int) {
	c := s.text[i]
	if c == '<' {
		s.angleBracketsInRow++
	} else {
		s.angleBracketsInRow = 0
	}
	switch c {
	case '\n', '\r':
		s.beginLine(i)
		return
	case '\t':
		s.tabsInLine++
		if s.lineIsBlank { // an error of its own, each
			s.tokenCountUpperBound++
		}
		return
	case ' ':
		if s.lineIsDirective {
			s.tokenCountUpperBound++
		}
		return
	}
	if s.lineIsBlank { // text that continues on the line is a token
		s.lineIsBlank, s.blankLinesInRow = false, 0
		s.tokenCountUpperBound++
		s.lineIsComment = c == '#' && !s.restOfLineHasQuotes(i)
	}
	if !s.lineIsComment && s.mayBeToken(i) { // it is a token, and what follows may be one
		s.tokenCountUpperBound += 2
		s.lineIsDirective = s.lineIsDirective || c == '%'
		s.sawBrace = s.sawBrace || c == '{'
	}
}

// beginLine starts a new line after the byte at i. CR, LF and CRLF end a line.
func (s *lexerCostScanner) beginLine(i int) {
	if s.text[i] == '\n' && i > 0 && s.text[i-1] == '\r' {
		s.lineStart = i + 1
		return
	}
	if s.lineIsBlank {
		s.blankLinesInRow++
	}
	s.lineNumber, s.lineStart, s.lineIsBlank, s.tabsInLine, s.lineIsDirective, s.lineIsComment = s.lineNumber+1, i+1, true, 0, false, false
}

// restOfLineHasQuotes reports whether a quote may begin or end between i and the end of the line.
func (s *lexerCostScanner) restOfLineHasQuotes(i int) bool {
	rest := s.text[i:]
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ContainsAny(rest, `"'`)
}

// mayBeToken reports whether the lexer may make a separate token of the byte at i.
func (s *lexerCostScanner) mayBeToken(i int) bool {
	var before, after byte = '\n', '\n'
	if i > 0 {
		before = s.text[i-1]
	}
	if i+1 < len(s.text) {
		after = s.text[i+1]
	}
	switch s.text[i] {
	case '[', ']', '{', '}', ',', '"', '\'':
		return true
	case '-':
		return isBlankOrNUL(after) || i == s.lineStart && after == '-'
	case '?':
		return isBlankOrNUL(after)
	case ':':
		return isBlankOrNUL(after) || s.sawBrace && after != '/'
	case '&', '*', '!', '%', '|', '>', '@', '`', '#', '<', '.':
		// Within a word they are part of it.
		return isBlankOrNUL(before) || strings.IndexByte("[]{},\"'-?:&*!%|>@`#<.", before) >= 0
	}
	return false
}

// isBlankOrNUL reports whether c ends a mark. The lexer treats NUL as the end of the
// text.
func isBlankOrNUL(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }
