package sitemap

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/decorum-crawler/decorum"
)

// An xmlVocabulary holds the element names of one kind of document that lists URLs.
type xmlVocabulary struct {
	entryElem       string // element of one entry
	locElem         string // element of the entry's location
	locIsHref       bool   // the location is the attribute href, as in Atom
	dateElem        string // element of the time of the last change
	fallbackLocElem string // element used as location if it is a URL and locElem is missing
	isIndex         bool   // entries are sitemaps
	isFeed          bool
}

// vocabularies holds the known documents by the local name of their root element.
var vocabularies = map[string]xmlVocabulary{
	"urlset":       {entryElem: "url", locElem: "loc", dateElem: "lastmod"},
	"sitemapindex": {entryElem: "sitemap", locElem: "loc", dateElem: "lastmod", isIndex: true},
	"rss":          {entryElem: "item", locElem: "link", dateElem: "pubDate", fallbackLocElem: "guid", isFeed: true},
	"RDF":          {entryElem: "item", locElem: "link", isFeed: true},
	"feed":         {entryElem: "entry", locElem: "link", locIsHref: true, dateElem: "updated", isFeed: true},
}

// An xmlDocumentReader reads one XML document and emits its entries.
type xmlDocumentReader struct {
	scanner
	xmlVocabulary
	emitter    *entryEmitter
	openElems  [][]byte    // names of the open elements, outermost first
	savedBases []savedBase // values of emitter.base that open elements with xml:base have replaced

	entryDepth   int          // depth of the open entry; 0: none
	fieldDepth   int          // depth of the open field; 0: none
	fieldValue   []byte       // text of the open field
	valueErr     error        // why fieldValue is unusable
	partialEntry partialEntry // the open entry
}

// A savedBase is the base URL that applies again after the element at depth ends.
type savedBase struct {
	depth int
	base  decorum.URL
}

// readDocument reads the document up to the end of its root element.
func (d *xmlDocumentReader) readDocument() error {
	for {
		t, err := d.nextToken()
		switch err {
		case nil:
			err = d.handleToken(t)
		case io.EOF: // an error that wraps io.EOF says more
			err = errUnexpectedEOF
		}
		if err != nil && !d.emitter.stopped {
			err = d.emitUnfinished(t, err)
		}
		if err != nil {
			return err
		}
		if t.kind != textToken && len(d.openElems) == 0 {
			return nil
		}
	}
}

// emitUnfinished emits the entry that the error err at t left unfinished, if its location is
// complete: a location is complete before an end tag, even a malformed one. It returns err, or the
// error of yield.
func (d *xmlDocumentReader) emitUnfinished(t token, err error) error {
	if t.kind == endTag && d.fieldDepth > 0 {
		if emitErr := d.endElement(); d.emitter.stopped {
			return emitErr
		}
	}
	if d.entryDepth > 0 && len(d.partialEntry.rawLocation()) > 0 {
		if emitErr := d.emitEntry(); d.emitter.stopped {
			return emitErr
		}
	}
	return err
}

// handleToken processes the next token of the document.
func (d *xmlDocumentReader) handleToken(t token) error {
	switch t.kind {
	case startTag:
		if err := d.startElement(t); err != nil || !t.selfClosing {
			return err
		}
		return d.endElement()
	case endTag:
		if len(d.openElems) == 0 || !bytes.Equal(d.openElems[len(d.openElems)-1], t.name) {
			return fmt.Errorf("end tag %.40q: %w", t.name, ErrSyntax)
		}
		return d.endElement()
	default:
		d.handleText(t)
		return nil
	}
}

// startElement opens an element.
func (d *xmlDocumentReader) startElement(t token) error {
	if len(d.openElems) == d.emitter.MaxElementDepth {
		return fmt.Errorf("depth: %w", ErrLimit)
	}
	d.pushElement(t.name)
	depth := len(d.openElems)
	switch {
	// The root element decides the vocabulary.
	case depth == 1:
		format, ok := vocabularies[string(localName(t.name))]
		if !ok || d.emitter.FeedsOnly && !format.isFeed {
			return fmt.Errorf("element %.40q: %w", t.name, ErrNotSitemap)
		}
		d.xmlVocabulary = format
		d.applyXMLBase(t)
	// Outside of an entry, only the beginning of an entry matters.
	case d.entryDepth == 0:
		d.applyXMLBase(t)
		if string(localName(t.name)) == d.entryElem {
			d.entryDepth = depth
			d.partialEntry.reset()
		}
	// A field is a child of the entry with the same prefix; others belong to extensions.
	case depth == d.entryDepth+1 && bytes.Equal(namePrefix(t.name), namePrefix(d.openElems[d.entryDepth-1])):
		return d.startField(t)
	}
	return nil
}

// applyXMLBase applies the xml:base of a feed or of its entry. Atom defines it (RFC 4287 §2), and
// some RSS feeds use it. A base longer than MaxURLBytes is ignored, because it would make every
// relative location as long.
func (d *xmlDocumentReader) applyXMLBase(t token) {
	raw := attributeValue(t.attrs, "xml:base")
	if !d.isFeed || raw == nil {
		return
	}
	ref, bad := decodeReferences(&d.textBuf, raw)
	u, err := d.emitter.base.ResolveBytes(ref)
	if bad == nil && err == nil && len(u.String()) <= d.emitter.MaxURLBytes {
		d.savedBases = append(d.savedBases, savedBase{len(d.openElems), d.emitter.base})
		d.emitter.base = u
	}
}

// startField opens a field of an entry. It takes the location from the attributes in Atom.
func (d *xmlDocumentReader) startField(t token) error {
	d.fieldDepth, d.fieldValue, d.valueErr = len(d.openElems), d.fieldValue[:0], nil
	if !d.locIsHref || string(localName(t.name)) != d.locElem {
		return nil
	}
	rel := string(attributeValue(t.attrs, "rel"))
	if len(d.partialEntry.loc) > 0 || rel != "" && rel != "alternate" {
		return nil
	}
	href, err := decodeReferences(&d.textBuf, attributeValue(t.attrs, "href"))
	d.partialEntry.setLocation(href, d.in.line, err)
	return nil
}

// handleText adds text to the open field. Text directly in an entry becomes its fallbackLoc.
func (d *xmlDocumentReader) handleText(t token) {
	switch {
	case d.fieldDepth > 0:
		capacity := maxTextLen - len(d.fieldValue)
		d.fieldValue = append(d.fieldValue, t.text[:min(len(t.text), capacity)]...)
		if d.valueErr = cmp.Or(d.valueErr, t.textErr); d.valueErr == nil && len(t.text) > capacity {
			d.valueErr = ErrLimit
		}
	case d.entryDepth > 0 && d.entryDepth == len(d.openElems) && t.textErr == nil:
		if content := bytes.TrimSpace(t.text); len(content) > 0 {
			d.setFallbackLoc(content)
		}
	}
}

// setFallbackLoc sets the location that is used if the entry has no other.
func (d *xmlDocumentReader) setFallbackLoc(text []byte) {
	d.partialEntry.fallbackLoc = append(d.partialEntry.fallbackLoc[:0], text...)
	if len(d.partialEntry.loc) == 0 {
		d.partialEntry.line = d.in.line
	}
}

// endElement closes the innermost element.
func (d *xmlDocumentReader) endElement() (err error) {
	depth := len(d.openElems)
	name := localName(d.openElems[depth-1])
	d.openElems = d.openElems[:depth-1]
	switch depth {
	case d.fieldDepth:
		d.fieldDepth = 0
		err = d.endField(name)
	case d.entryDepth:
		err = d.emitEntry()
		d.entryDepth = 0
	}
	if n := len(d.savedBases) - 1; n >= 0 && d.savedBases[n].depth == depth {
		d.emitter.base, d.savedBases = d.savedBases[n].base, d.savedBases[:n]
	}
	return err
}

// endField sets the field name of the entry to fieldValue.
func (d *xmlDocumentReader) endField(name []byte) error {
	value := bytes.TrimSpace(d.fieldValue)
	if len(value) == 0 {
		return nil
	}
	var err error
	// An unusable value is reported, and the entry is used without it.
	switch string(name) {
	case d.locElem:
		if d.locIsHref {
			return nil
		}
		return d.setLocation(value)
	case d.dateElem:
		d.partialEntry.lastMod, err = parseDate(value)
	case d.fallbackLocElem:
		if d.valueErr == nil {
			d.setFallbackLoc(value)
		}
	case "priority":
		d.partialEntry.priority, err = parsePriority(value)
	case "changefreq":
		d.partialEntry.changeFreq, err = parseChangeFreq(value)
	}
	if err != nil {
		d.emitter.reportError(d.in.line, string(name), value, err)
	}
	return nil
}

// setLocation sets the location of the entry. A second location begins a new entry.
func (d *xmlDocumentReader) setLocation(value []byte) (err error) {
	if len(d.partialEntry.loc) > 0 {
		err = d.emitEntry()
		d.partialEntry.reset()
	}
	d.partialEntry.setLocation(value, d.in.line, d.valueErr)
	return err
}

// emitEntry emits the open entry.
func (d *xmlDocumentReader) emitEntry() error {
	d.partialEntry.line = cmp.Or(d.partialEntry.line, d.in.line)
	return d.emitter.emit(&d.partialEntry, d.isIndex)
}

// pushElement adds an open element, and reuses the memory of an element that was closed before.
func (d *xmlDocumentReader) pushElement(name []byte) {
	n := len(d.openElems)
	if n < cap(d.openElems) {
		d.openElems = d.openElems[:n+1]
		d.openElems[n] = append(d.openElems[n][:0], name...)
		return
	}
	d.openElems = append(d.openElems, bytes.Clone(name))
}

// localName returns name without its prefix.
func localName(name []byte) []byte { return name[bytes.LastIndexByte(name, ':')+1:] }

// namePrefix returns the prefix of name with its colon.
func namePrefix(name []byte) []byte { return name[:bytes.LastIndexByte(name, ':')+1] }
