package extract

import "bytes"

// A tokenizer reads the tags of a page. It skips text and comments.
type tokenizer struct {
	input       []byte // the page in UTF-8
	pos         int    // index in input of the next byte to read
	selfClosing bool   // the last tag ended in "/>"
	allowCDATA  bool   // "<![CDATA[" begins a CDATA section, whose content is text
}

// Classes of bytes.
const (
	classBlank       = 1 << iota // separates attributes
	classLetter                  // begins the name of a tag
	classTagNameEnd              // ends the name of a tag
	classAttrNameEnd             // ends the name of an attribute
)

// byteClasses has the set of classes of every byte.
var byteClasses = newByteClasses()

func newByteClasses() (table [256]uint8) {
	for _, c := range whitespace {
		table[c] = classBlank | classTagNameEnd | classAttrNameEnd
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = classLetter, classLetter
	}
	table['/'] = classTagNameEnd | classAttrNameEnd
	table['>'] = classTagNameEnd | classAttrNameEnd
	table['='] = classAttrNameEnd
	return table
}

// nextTag returns the name of the next tag, and whether it is an end tag; ok is false at the end of
// the page. The caller must call readAttributes before the next call.
func (t *tokenizer) nextTag() (name []byte, end, ok bool) {
	for {
		i := bytes.IndexByte(t.input[t.pos:], '<')
		if i < 0 || t.pos+i+1 == len(t.input) {
			t.pos = len(t.input)
			return nil, false, false
		}
		t.pos += i + 1
		switch c := t.input[t.pos]; {
		case byteClasses[c]&classLetter != 0:
			return t.readTagName(), false, true
		case c == '/':
			t.pos++
			if t.pos < len(t.input) && byteClasses[t.input[t.pos]]&classLetter != 0 {
				return t.readTagName(), true, true
			}
			t.skipPast('>') // "</" without a name begins a bogus comment
		case c == '!':
			t.pos++
			t.skipMarkupDeclaration()
		case c == '?':
			t.skipPast('>')
		}
	}
}

// readTagName returns the name of the tag at pos, and moves past it.
func (t *tokenizer) readTagName() []byte {
	p := t.pos
	for p < len(t.input) && byteClasses[t.input[p]]&classTagNameEnd == 0 {
		p++
	}
	name := t.input[t.pos:p]
	t.pos = p
	return name
}

// skipPast moves past the next c, or to the end.
func (t *tokenizer) skipPast(c byte) {
	if i := bytes.IndexByte(t.input[t.pos:], c); i >= 0 {
		t.pos += i + 1
	} else {
		t.pos = len(t.input)
	}
}

// skipMarkupDeclaration moves past a comment, CDATA section or declaration. pos is behind its "<!".
func (t *tokenizer) skipMarkupDeclaration() {
	switch rest := t.input[t.pos:]; {
	case bytes.HasPrefix(rest, []byte("--")):
		t.skipComment()
	case t.allowCDATA && bytes.HasPrefix(rest, []byte("[CDATA[")):
		t.skipCDATA()
	default:
		t.skipPast('>')
	}
}

// skipCDATA moves past a CDATA section, which ends in "]]>".
func (t *tokenizer) skipCDATA() {
	for t.pos < len(t.input) {
		t.skipPast('>')
		if bytes.HasSuffix(t.input[:t.pos], []byte("]]>")) {
			return
		}
	}
}

// skipComment moves past a comment, which ends in "-->" or "--!>".
func (t *tokenizer) skipComment() {
	start := t.pos + len("--")
	for t.pos = start; t.pos < len(t.input); {
		t.skipPast('>')
		// The dashes that open a comment may also close it, <!--> and <!--->,
		// but not with an exclamation mark.
		if bytes.HasSuffix(t.input[:t.pos], []byte("-->")) ||
			bytes.HasSuffix(t.input[start:t.pos], []byte("--!>")) {
			return
		}
	}
}

// readAttributes moves past the attributes of a tag and its ">". It sets the attributes that a has
// a field for; a may be nil. It returns false if the page ends inside the tag, which then does not
// count as a tag.
func (t *tokenizer) readAttributes(a *attributes) bool {
	b, p := t.input, t.pos
	for {
		t.selfClosing = false
		// Separators; a slash right before ">" closes the element.
		for p < len(b) && (byteClasses[b[p]]&classBlank != 0 || b[p] == '/') {
			t.selfClosing = b[p] == '/'
			p++
		}
		if p == len(b) {
			break
		}
		if b[p] == '>' {
			t.pos = p + 1
			return true
		}
		start := p
		p++ // any byte can begin a name, even "="
		for p < len(b) && byteClasses[b[p]]&classAttrNameEnd == 0 {
			p++
		}
		name := b[start:p]
		for p < len(b) && byteClasses[b[p]]&classBlank != 0 {
			p++
		}
		value := b[p:p]
		if p < len(b) && b[p] == '=' {
			if value, p = readAttributeValue(b, p+1); p == len(b) {
				break
			}
		}
		if a != nil {
			a.setIfKnown(name, value)
		}
	}
	t.pos = len(b)
	return false
}

// readAttributeValue returns the value that begins at b[p], and the index of what follows it:
// len(b) if the page ends inside the value.
func readAttributeValue(b []byte, p int) (value []byte, next int) {
	for p < len(b) && byteClasses[b[p]]&classBlank != 0 {
		p++
	}
	if p == len(b) {
		return nil, p
	}
	if quote := b[p]; quote == '"' || quote == '\'' {
		i := bytes.IndexByte(b[p+1:], quote)
		if i < 0 {
			return nil, len(b)
		}
		return b[p+1 : p+1+i], p + i + 2
	}
	start := p
	for p < len(b) && b[p] != '>' && byteClasses[b[p]]&classBlank == 0 {
		p++
	}
	return b[start:p], p
}

// readRawText returns the content of an element whose content is text, and moves to its end tag, or
// to the end of the page.
func (t *tokenizer) readRawText(element string) []byte {
	start := t.pos
	for t.pos < len(t.input) {
		i := bytes.IndexByte(t.input[t.pos:], '<')
		if i < 0 {
			break
		}
		t.pos += i
		if startsWithTag(t.input[t.pos:], "</", element) {
			return t.input[start:t.pos]
		}
		t.pos++
	}
	t.pos = len(t.input)
	return t.input[start:]
}

// skipScript moves to the end tag of a script. Inside "<!-- -->", a script may write another script
// element, whose end tag does not end the outer one.
func (t *tokenizer) skipScript() {
	start := t.pos
	content := t.readRawText("script")
	if !bytes.Contains(content, []byte("<!--")) {
		return
	}
	t.pos = start
	// escaped: inside "<!--". nested: inside a script element there.
	escaped, nested := false, false
	for t.pos < len(t.input) {
		i := bytes.IndexAny(t.input[t.pos:], "<-")
		if i < 0 {
			break
		}
		t.pos += i
		switch rest := t.input[t.pos:]; {
		case !escaped && bytes.HasPrefix(rest, []byte("<!--")):
			escaped = true
			t.pos += len("<!") // leaves the dashes, which may belong to the end, as in "<!-->"
		case bytes.HasPrefix(rest, []byte("-->")):
			escaped, nested = false, false
			t.pos += len("-->")
		case startsWithTag(rest, "</", "script"):
			if !nested {
				return
			}
			nested = false
			t.pos++
		case escaped && startsWithTag(rest, "<", "script"):
			nested = true
			t.pos++
		default:
			t.pos++
		}
	}
	t.pos = len(t.input)
}

// startsWithTag reports whether b begins with open, such as "</", and the complete name of element.
func startsWithTag(b []byte, open, element string) bool {
	n := len(open) + len(element)
	return len(b) > n && string(b[:len(open)]) == open &&
		equalFold(b[len(open):n], element) && byteClasses[b[n]]&classTagNameEnd != 0
}

// equalFold reports whether b equals word, ignoring ASCII case. word must be in lower case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c != word[i] && (byteClasses[c]&classLetter == 0 || c|0x20 != word[i]) {
			return false
		}
	}
	return true
}
