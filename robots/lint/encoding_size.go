package lint

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum/robots"
)

// sizeAdvice is the advice of all findings of lintSize.
const sizeAdvice = "merge rules into wider ones and keep what is excluded in one directory"

// lintEncodingAndHTML checks the bytes of the file. It returns false if the file is in UTF-16, so that
// checking its lines is useless.
func (l *linter) lintEncodingAndHTML() bool {
	if strings.HasPrefix(l.text, "\xff\xfe") || strings.HasPrefix(l.text, "\xfe\xff") ||
		len(l.text) >= 4 && strings.Count(l.text, "\x00") >= len(l.text)/3 {
		l.addFinding(0, Error, "FMT-15", "the file is in UTF-16",
			"no line is read: everything is allowed", "save it as UTF-8")
		return false
	}
	if i := strings.IndexByte(l.text, 0); i >= 0 {
		l.addFinding(l.lineNumberAtOffset(i), Error, "FMT-13", "there is a NUL byte",
			"Yandex does not read the file as text and allows everything", "save it as plain text")
	}
	// Servers often send an error page in place of a robots.txt.
	start := strings.ToLower(strings.TrimLeft(l.text[:min(len(l.text), 1024)], " \t\r\n"))
	if strings.HasPrefix(start, "<!doctype") || strings.HasPrefix(start, "<html") || strings.HasPrefix(start, "<?xml") {
		l.isHTML = true
		l.addFinding(1, Error, "FMT-05", "this is an HTML page",
			"lines that look like rules count as rules; crawlers ignore the rest",
			"serve the robots.txt as plain text, or answer 404 if the site has no robots.txt")
	}
	l.lintUTF8()
	return true
}

// lintUTF8 reports the first byte that is not valid UTF-8.
func (l *linter) lintUTF8() {
	for i, r := range l.text {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(l.text[i:]); size == 1 {
			l.addFinding(l.lineNumberAtOffset(i), Warning, "FMT-07", "the file is not valid UTF-8 from here on",
				"rules with such bytes match only URLs in the same old encoding", "save it as UTF-8")
			return
		}
	}
}

// lintSize checks the size of the file against the limits of crawlers (LINT-06). The byte order mark
// counts. If the file exceeds the limit, the finding does not name its size, because the caller may
// not have read all of it.
func (l *linter) lintSize() {
	size := l.bomBytes + len(l.text)
	limit := max(l.opts.MaxBytes, robots.MaxFileBytes)
	has := fmt.Sprintf("the file has %d bytes", size)
	switch {
	case size > limit:
		has = fmt.Sprintf("the file has more than %d KiB", limit>>10)
		l.addFinding(l.lineNumberAtOffset(limit-l.bomBytes), Error, "LINT-06", has,
			"Google ignores this line and all that follow", sizeAdvice)
	case size > limit/10*9:
		l.addFinding(0, Warning, "LINT-06", fmt.Sprintf("%s, close to %d KiB", has, limit>>10),
			"Google ignores what exceeds it", sizeAdvice)
	}
	if size > robots.MaxYandexFileBytes {
		severity := Hint
		if l.usesYandexDialect() {
			severity = Error
		}
		l.addFinding(0, severity, "LINT-06", has+", and the limit of Yandex is 32 KB",
			"Yandex ignores the file and allows everything", sizeAdvice)
	}
}

// lineNumberAtOffset returns the number of the line, from 1, that contains the byte text[i].
func (l *linter) lineNumberAtOffset(i int) int {
	before := l.text[:i]
	return 1 + strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
}
