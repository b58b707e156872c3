package daemon

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
	// maxYAMLTokens bounds the tokens. A list of 50,000 seeds has 100,000.
	maxYAMLTokens = 250_000
	// maxYAMLTabs bounds the tabs of a line: in quotes, each makes the lexer look ahead
	// to the end of the line.
	maxYAMLTabs = 256
	// maxYAMLAngles bounds the "<" in a row: each makes the lexer count those that follow.
	maxYAMLAngles = 256
	// maxYAMLBlankLines bounds the blank lines in a row: at the end of a block of text,
	// each makes the lexer copy the block.
	maxYAMLBlankLines = 256
)

// An exceededYAMLLimit is the place where a YAML text exceeds a limit, and the text of the error.
type exceededYAMLLimit struct {
	position filePosition
	problem  string
}

// A yamlLimitScanner counts, byte by byte, what the lexer would make of a text.
type yamlLimitScanner struct {
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

// checkYAMLTextLimits returns the first excess of a text; nil if the lexer needs time and
// memory in proportion to its length. It ignores quotes and comments, and so counts too
// many tokens rather than too few.
func checkYAMLTextLimits(text string) *exceededYAMLLimit {
	s := &yamlLimitScanner{text: text, lineNumber: 1, lineIsBlank: true}
	for i := range len(text) {
		s.scanByte(i)
		problem := ""
		switch {
		case s.tokenCountUpperBound > maxYAMLTokens:
			problem = fmt.Sprintf("the file has more than %d values and marks; put long lists of seeds into seed_files",
				maxYAMLTokens)
		case s.tabsInLine > maxYAMLTabs:
			problem = fmt.Sprintf("the line has more than %d tabs; write blanks, or several lines", maxYAMLTabs)
		case s.angleBracketsInRow > maxYAMLAngles:
			problem = fmt.Sprintf("there are more than %d < in a row; leave them out", maxYAMLAngles)
		case s.blankLinesInRow > maxYAMLBlankLines:
			problem = fmt.Sprintf("there are more than %d blank lines in a row; leave them out", maxYAMLBlankLines)
		}
		if problem != "" {
			return &exceededYAMLLimit{filePosition{s.lineNumber, utf8.RuneCountInString(text[min(s.lineStart, i):i]) + 1}, problem}
		}
	}
	return nil
}

// scanByte counts the byte at i.
func (s *yamlLimitScanner) scanByte(i int) {
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
func (s *yamlLimitScanner) beginLine(i int) {
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
func (s *yamlLimitScanner) restOfLineHasQuotes(i int) bool {
	rest := s.text[i:]
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ContainsAny(rest, `"'`)
}

// mayBeToken reports whether the lexer may make a separate token of the byte at i.
func (s *yamlLimitScanner) mayBeToken(i int) bool {
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
		return isYAMLBlank(after) || i == s.lineStart && after == '-'
	case '?':
		return isYAMLBlank(after)
	case ':':
		return isYAMLBlank(after) || s.sawBrace && after != '/'
	case '&', '*', '!', '%', '|', '>', '@', '`', '#', '<', '.':
		// Within a word they are part of it.
		return isYAMLBlank(before) || strings.IndexByte("[]{},\"'-?:&*!%|>@`#<.", before) >= 0
	}
	return false
}

// isYAMLBlank reports whether c ends a mark. The lexer treats NUL as the end of the
// text.
func isYAMLBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }
