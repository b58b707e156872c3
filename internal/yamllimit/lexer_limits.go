package yamllimit

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of a YAML text before the lexer reads it. The lexer allocates about 300 bytes for each
// token, and its time grows with the square of what the last three limits bound. They are constants
// because they protect the process that reads the file, and no crawl needs a file near them.
const (
	// MaxTokens bounds the tokens. A list of 50,000 seeds has 100,000.
	MaxTokens = 250_000
	// maxTabs bounds the tabs of a line: in quotes, the lexer looks ahead to the end of the line
	// for each.
	maxTabs = 256
	// maxAngles bounds the "<" in a row: the lexer counts the following ones for each.
	maxAngles = 256
	// maxBlankLines bounds the blank lines in a row: at the end of a block of text, the lexer
	// copies the block for each.
	maxBlankLines = 256
)

// A Violation says where a YAML text exceeds a limit, and which.
type Violation struct {
	Line, Column int    // counted from 1, in characters
	Problem      string // which limit, and what to do
}

// A lexerCostScanner reads a text byte by byte, and counts what the lexer would make of it.
type lexerCostScanner struct {
	text string

	tokenCountUpperBound int  // the lexer makes at most this many tokens
	lineNumber           int  // from 1
	lineStart            int  // offset of the line
	lineIsBlank          bool // the line contains only blanks so far
	blankLinesInRow      int  // blank lines before the current one
	tabsInLine           int
	angleBracketsInRow   int  // "<" before the next byte
	lineIsDirective      bool // the line may be a directive, whose words are tokens
	lineIsComment        bool // the line is a comment, or text in quotes or a block
	sawBrace             bool // after a "{", a colon may end a key without a blank after it
}

// checkText returns the first Violation of a text, nil if the lexer needs time and memory in
// proportion to its length. It ignores quotes and comments, and therefore counts rather too many
// tokens than too few.
func checkText(text string) *Violation {
	s := &lexerCostScanner{text: text, lineNumber: 1, lineIsBlank: true}
	for i := range len(text) {
		s.scanByte(i)
		// Report the first byte that exceeds a limit.
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
		if s.lineIsBlank { // each such tab is an error token
			s.tokenCountUpperBound++
		}
		return
	case ' ':
		if s.lineIsDirective {
			s.tokenCountUpperBound++
		}
		return
	}
	if s.lineIsBlank { // text that continues on the line is one token
		s.lineIsBlank, s.blankLinesInRow = false, 0
		s.tokenCountUpperBound++
		s.lineIsComment = c == '#' && !s.restOfLineHasQuotes(i)
	}
	if !s.lineIsComment && s.mayBeToken(i) { // this byte is a token, and the text after it may be one
		s.tokenCountUpperBound += 2
		s.lineIsDirective = s.lineIsDirective || c == '%'
		s.sawBrace = s.sawBrace || c == '{'
	}
}

// beginLine starts a new line after the byte at i. CR, LF and CRLF each end one line.
func (s *lexerCostScanner) beginLine(i int) {
	if s.text[i] == '\n' && i > 0 && s.text[i-1] == '\r' {
		s.lineStart = i + 1
		return
	}
	if s.lineIsBlank {
		s.blankLinesInRow++
	}
	s.lineNumber, s.lineStart, s.lineIsBlank, s.tabsInLine, s.lineIsDirective, s.lineIsComment = s.lineNumber+1, i+1,
		true, 0, false, false
}

// restOfLineHasQuotes reports whether the line contains a quotation mark at i or later.
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
		// Within a word they are part of the word.
		return isBlankOrNUL(before) || strings.IndexByte("[]{},\"'-?:&*!%|>@`#<.", before) >= 0
	}
	return false
}

// isBlankOrNUL reports whether c ends an indicator such as "-" or ":". The lexer treats NUL as the
// end of the text.
func isBlankOrNUL(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }
