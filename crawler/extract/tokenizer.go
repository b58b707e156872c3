package extract

import "bytes"

// tokens walks over the tags of a page. It looks at text and comments only to
// pass over them.
type tokens struct {
	b     []byte
	p     int  // what comes next
	void  bool // the last tag closed itself: <br/>
	cdata bool // CDATA sections are text
}

// Classes of bytes.
const (
	blank     = 1 << iota // what separates attributes
	letter                // what a tag's name begins with
	endOfTag              // what ends a tag's name
	endOfName             // what ends an attribute's name
)

// class holds the classes of every byte.
var class = classes()

func classes() (table [256]uint8) {
	for _, c := range blanks {
		table[c] = blank | endOfTag | endOfName
	}
	for c := 'a'; c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = letter, letter
	}
	table['/'] = endOfTag | endOfName
	table['>'] = endOfTag | endOfName
	table['='] = endOfName
	return table
}

// next returns the name of the next tag and whether it is an end tag. The
// attributes must be read before next is called again.
func (t *tokens) next() (name []byte, end, ok bool) {
	for {
		i := bytes.IndexByte(t.b[t.p:], '<')
		if i < 0 || t.p+i+1 == len(t.b) {
			t.p = len(t.b)
			return nil, false, false
		}
		t.p += i + 1
		switch c := t.b[t.p]; {
		case class[c]&letter != 0:
			return t.name(), false, true
		case c == '/':
			t.p++
			if t.p < len(t.b) && class[t.b[t.p]]&letter != 0 {
				return t.name(), true, true
			}
			t.past('>')
		case c == '!':
			t.p++
			t.markup()
		case c == '?':
			t.past('>')
		}
	}
}

// name reads the name of a tag.
func (t *tokens) name() []byte {
	p := t.p
	for p < len(t.b) && class[t.b[p]]&endOfTag == 0 {
		p++
	}
	name := t.b[t.p:p]
	t.p = p
	return name
}

// past moves past the next c, or to the end.
func (t *tokens) past(c byte) {
	if i := bytes.IndexByte(t.b[t.p:], c); i >= 0 {
		t.p += i + 1
	} else {
		t.p = len(t.b)
	}
}

// markup moves past what began with "<!".
func (t *tokens) markup() {
	switch rest := t.b[t.p:]; {
	case bytes.HasPrefix(rest, []byte("--")):
		t.comment()
	case t.cdata && bytes.HasPrefix(rest, []byte("[CDATA[")):
		t.section()
	default:
		t.past('>')
	}
}

// section moves past a CDATA section.
func (t *tokens) section() {
	for t.p < len(t.b) {
		t.past('>')
		if bytes.HasSuffix(t.b[:t.p], []byte("]]>")) {
			return
		}
	}
}

// comment moves past a comment.
func (t *tokens) comment() {
	start := t.p + len("--")
	for t.p = start; t.p < len(t.b); {
		t.past('>')
		// The dashes that open a comment may also close it, <!--> and <!--->,
		// but not with an exclamation mark.
		if bytes.HasSuffix(t.b[:t.p], []byte("-->")) ||
			bytes.HasSuffix(t.b[start:t.p], []byte("--!>")) {
			return
		}
	}
}

// attributes moves past the attributes of a tag and its ">", and puts those
// that a has a place for into it. It returns false if the page ends before
// the tag does: then there was no tag.
func (t *tokens) attributes(a *attributes) bool {
	b, p := t.b, t.p
	for {
		t.void = false
		for p < len(b) && (class[b[p]]&blank != 0 || b[p] == '/') {
			t.void = b[p] == '/'
			p++
		}
		if p == len(b) {
			break
		}
		if b[p] == '>' {
			t.p = p + 1
			return true
		}
		start := p
		p++ // whatever it is, even "=", it begins a name
		for p < len(b) && class[b[p]]&endOfName == 0 {
			p++
		}
		name := b[start:p]
		for p < len(b) && class[b[p]]&blank != 0 {
			p++
		}
		value := b[p:p]
		if p < len(b) && b[p] == '=' {
			if value, p = attributeValue(b, p+1); p == len(b) {
				break
			}
		}
		if a != nil {
			a.set(name, value)
		}
	}
	t.p = len(b)
	return false
}

// attributeValue returns the value that begins at p, and what follows it.
func attributeValue(b []byte, p int) (value []byte, next int) {
	for p < len(b) && class[b[p]]&blank != 0 {
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
	for p < len(b) && b[p] != '>' && class[b[p]]&blank == 0 {
		p++
	}
	return b[start:p], p
}

// attributes are the values of the attributes that matter, as written; nil if
// there is none.
type attributes struct {
	href, src, srcset, xlink, rel, kind, name, content, charset, equiv []byte
}

// set keeps the value, if the attribute matters. The first of several wins.
func (a *attributes) set(name, value []byte) {
	var place *[]byte
	switch {
	case is(name, "href"):
		place = &a.href
	case is(name, "rel"):
		place = &a.rel
	case is(name, "src"):
		place = &a.src
	case is(name, "name"):
		place = &a.name
	case is(name, "content"):
		place = &a.content
	case is(name, "type"):
		place = &a.kind
	case is(name, "srcset"):
		place = &a.srcset
	case is(name, "xlink:href"):
		place = &a.xlink
	case is(name, "charset"):
		place = &a.charset
	case is(name, "http-equiv"):
		place = &a.equiv
	default:
		return
	}
	if *place == nil {
		*place = value
	}
}

// text returns the content of an element that holds text and no elements, and
// moves to its end tag, or to the end of the page.
func (t *tokens) text(element string) []byte {
	start := t.p
	for t.p < len(t.b) {
		i := bytes.IndexByte(t.b[t.p:], '<')
		if i < 0 {
			break
		}
		t.p += i
		if tagAt(t.b[t.p:], "</", element) {
			return t.b[start:t.p]
		}
		t.p++
	}
	t.p = len(t.b)
	return t.b[start:]
}

// script moves to the end tag of a script. Inside "<!-- -->" a script may
// itself write a script element, whose end tag is not the end.
func (t *tokens) script() {
	start := t.p
	content := t.text("script")
	if !bytes.Contains(content, []byte("<!--")) {
		return
	}
	t.p = start
	escaped, nested := false, false
	for t.p < len(t.b) {
		i := bytes.IndexAny(t.b[t.p:], "<-")
		if i < 0 {
			break
		}
		t.p += i
		switch rest := t.b[t.p:]; {
		case !escaped && bytes.HasPrefix(rest, []byte("<!--")):
			escaped = true
			t.p += len("<!") // the dashes may belong to the end: <!-->
		case bytes.HasPrefix(rest, []byte("-->")):
			escaped, nested = false, false
			t.p += len("-->")
		case tagAt(rest, "</", "script"):
			if !nested {
				return
			}
			nested = false
			t.p++
		case escaped && tagAt(rest, "<", "script"):
			nested = true
			t.p++
		default:
			t.p++
		}
	}
	t.p = len(t.b)
}

// tagAt reports whether b begins with open and the element's name, whole.
func tagAt(b []byte, open, element string) bool {
	n := len(open) + len(element)
	return len(b) > n && string(b[:len(open)]) == open &&
		is(b[len(open):n], element) && class[b[n]]&endOfTag != 0
}

// is reports whether b is the word, which is in lower case, in any case.
func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c != word[i] && (class[c]&letter == 0 || c|0x20 != word[i]) {
			return false
		}
	}
	return true
}
