package extract

// attributes has the values of the attributes that affect the result, as written; nil if absent.
type attributes struct {
	href, src, srcset, xlinkHref, rel, typ, nameValue, content, charset, httpEquiv, data, srcdoc []byte
	action, method, formAction, formMethod, cite                                                 []byte

	resource *resourceAttributes // nil: without Scanner.IncludeResources
}

// resourceAttributes has the values of the attributes that only name resources of a page.
type resourceAttributes struct {
	as, style, poster, background, imageSrcset, lowsrc, dynsrc, longdesc, manifest []byte
}

// clear forgets the attributes of the last tag.
func (a *attributes) clear() {
	resource := a.resource
	if resource != nil {
		*resource = resourceAttributes{}
	}
	*a = attributes{}
	a.resource = resource
}

// asValue returns the decoded value of the attribute as, which only resources have.
func (a *attributes) asValue() []byte {
	if a.resource == nil {
		return nil
	}
	return unescape(a.resource.as)
}

// setIfKnown sets the field for the attribute called name, if there is one. Of duplicates the first
// counts.
func (a *attributes) setIfKnown(name, value []byte) {
	if dst := a.field(name); dst != nil {
		setIfUnset(dst, value)
	} else if a.resource != nil {
		if dst := a.resource.field(name); dst != nil {
			setIfUnset(dst, value)
		}
	}
}

// field returns the field for the attribute called name, nil if there is none. Most attributes of a page
// have none, so their length is compared first.
func (a *attributes) field(name []byte) *[]byte {
	is := func(known string) bool { return equalFold(name, known) }
	switch len(name) {
	case 3:
		switch {
		case is("src"):
			return &a.src
		case is("rel"):
			return &a.rel
		}
	case 4:
		switch {
		case is("href"):
			return &a.href
		case is("name"):
			return &a.nameValue
		case is("type"):
			return &a.typ
		case is("data"):
			return &a.data
		case is("cite"):
			return &a.cite
		}
	case 6:
		switch {
		case is("srcset"):
			return &a.srcset
		case is("srcdoc"):
			return &a.srcdoc
		case is("action"):
			return &a.action
		case is("method"):
			return &a.method
		}
	case 7:
		switch {
		case is("content"):
			return &a.content
		case is("charset"):
			return &a.charset
		}
	case 10:
		switch {
		case is("xlink:href"):
			return &a.xlinkHref
		case is("http-equiv"):
			return &a.httpEquiv
		case is("formaction"):
			return &a.formAction
		case is("formmethod"):
			return &a.formMethod
		}
	}
	return nil
}

// field returns the field for the attribute called name, nil if there is none.
func (a *resourceAttributes) field(name []byte) *[]byte {
	is := func(known string) bool { return equalFold(name, known) }
	switch {
	case is("style"):
		return &a.style
	case is("as"):
		return &a.as
	case is("poster"):
		return &a.poster
	case is("background"):
		return &a.background
	case is("imagesrcset"):
		return &a.imageSrcset
	case is("lowsrc"):
		return &a.lowsrc
	case is("dynsrc"):
		return &a.dynsrc
	case is("longdesc"):
		return &a.longdesc
	case is("manifest"):
		return &a.manifest
	}
	return nil
}

func setIfUnset(dst *[]byte, value []byte) {
	if *dst == nil {
		*dst = value
	}
}
