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
	// maxYAMLMarks bounds the tokens. A list of 50,000 seeds has 100,000.
	maxYAMLMarks = 250_000
	// maxYAMLTabs bounds the tabs of a line: in quotes, each makes the lexer look ahead
	// to the end of the line.
	maxYAMLTabs = 256
	// maxYAMLAngles bounds the "<" in a row: each makes the lexer count those that follow.
	maxYAMLAngles = 256
	// maxYAMLBlankLines bounds the blank lines in a row: at the end of a block of text,
	// each makes the lexer copy the block.
	maxYAMLBlankLines = 256
)

// An excess is the place where a YAML text exceeds a limit, and the text of the error.
type excess struct {
	at      place
	problem string
}

// A yamlScan counts, byte by byte, what the lexer would make of a text.
type yamlScan struct {
	text string

	marks      int  // at least as many as the lexer makes tokens
	line       int  // number of the line, from 1
	start      int  // where the line starts
	blank      bool // the line has held nothing but blanks so far
	blankLines int  // in a row, up to the line
	tabs       int  // of the line
	angles     int  // "<" in a row
	directive  bool // the line may be a directive, whose words are tokens
	comment    bool // the line is a comment, or text within quotes or a block
	braces     bool // a "{" was seen: a colon may end a key without a blank behind it
}

// checkYAMLText returns the first excess of a text; nil if the lexer needs time and
// memory in proportion to its length. It ignores quotes and comments, and so counts too
// many tokens rather than too few.
func checkYAMLText(text string) *excess {
	s := &yamlScan{text: text, line: 1, blank: true}
	for i := range len(text) {
		s.read(i)
		problem := ""
		switch {
		case s.marks > maxYAMLMarks:
			problem = fmt.Sprintf("the file has more than %d values and marks; put long lists of seeds into seed_files",
				maxYAMLMarks)
		case s.tabs > maxYAMLTabs:
			problem = fmt.Sprintf("the line has more than %d tabs; write blanks, or several lines", maxYAMLTabs)
		case s.angles > maxYAMLAngles:
			problem = fmt.Sprintf("there are more than %d < in a row; leave them out", maxYAMLAngles)
		case s.blankLines > maxYAMLBlankLines:
			problem = fmt.Sprintf("there are more than %d blank lines in a row; leave them out", maxYAMLBlankLines)
		}
		if problem != "" {
			return &excess{place{s.line, utf8.RuneCountInString(text[min(s.start, i):i]) + 1}, problem}
		}
	}
	return nil
}

// read counts the byte at i.
func (s *yamlScan) read(i int) {
	c := s.text[i]
	if c == '<' {
		s.angles++
	} else {
		s.angles = 0
	}
	switch c {
	case '\n', '\r':
		s.newline(i)
		return
	case '\t':
		s.tabs++
		if s.blank { // an error of its own, each
			s.marks++
		}
		return
	case ' ':
		if s.directive {
			s.marks++
		}
		return
	}
	if s.blank { // text that continues on the line is a token
		s.blank, s.blankLines = false, 0
		s.marks++
		s.comment = c == '#' && !s.hasQuotes(i)
	}
	if !s.comment && s.isMark(i) { // it is a token, and what follows may be one
		s.marks += 2
		s.directive = s.directive || c == '%'
		s.braces = s.braces || c == '{'
	}
}

// newline starts a new line after the byte at i. CR, LF and CRLF end a line.
func (s *yamlScan) newline(i int) {
	if s.text[i] == '\n' && i > 0 && s.text[i-1] == '\r' {
		s.start = i + 1
		return
	}
	if s.blank {
		s.blankLines++
	}
	s.line, s.start, s.blank, s.tabs, s.directive, s.comment = s.line+1, i+1, true, 0, false, false
}

// hasQuotes reports whether a quote may begin or end between i and the end of the line.
func (s *yamlScan) hasQuotes(i int) bool {
	rest := s.text[i:]
	if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ContainsAny(rest, `"'`)
}

// isMark reports whether the lexer may make a separate token of the byte at i.
func (s *yamlScan) isMark(i int) bool {
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
		return isYAMLBlank(after) || i == s.start && after == '-'
	case '?':
		return isYAMLBlank(after)
	case ':':
		return isYAMLBlank(after) || s.braces && after != '/'
	case '&', '*', '!', '%', '|', '>', '@', '`', '#', '<', '.':
		// Within a word they are part of it.
		return isYAMLBlank(before) || strings.IndexByte("[]{},\"'-?:&*!%|>@`#<.", before) >= 0
	}
	return false
}

// isYAMLBlank reports whether c ends a mark. The lexer treats NUL as the end of the
// text.
func isYAMLBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }
