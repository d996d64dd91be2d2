# SPDX-License-Identifier: BSD-2-Clause
# Installation, source tarball, Debian packages, the record of the ABI and the reference; part of the Makefile.

PREFIX ?= /usr/local
libdir = $(PREFIX)/lib
includedir = $(PREFIX)/include
mandir = $(PREFIX)/share/man
docdir = $(PREFIX)/share/doc/unsalt
ifneq ($(filter-out /%,$(PREFIX)),)
$(error PREFIX=$(PREFIX) is not an absolute path)
endif

# ---- files made from templates: @NAME@ becomes the value of NAME

# Paths under the prefix are said relative to it, so that an installation can be moved as a whole.
PC_LIBDIR = $(patsubst $(PREFIX)/%,$${prefix}/%,$(libdir))
PC_INCLUDEDIR = $(patsubst $(PREFIX)/%,$${prefix}/%,$(includedir))
cmakedir = $(libdir)/cmake/unsalt
cmake_path = $(if $(filter $(PREFIX)/%,$(1)),$(shell realpath -ms --relative-to='$(cmakedir)' '$(1)'),$(1))
CMAKE_LIBDIR = ../..
CMAKE_INCLUDEDIR = $(if $(filter $(PREFIX)/%,$(libdir)),$(call cmake_path,$(includedir)),$(includedir))
POINTER_SIZE = $(shell echo __SIZEOF_POINTER__ | $(CC) $(CFLAGS) -E -P -)
TEMPLATE_WORDS := VERSION MAJOR SONAME PREFIX PC_LIBDIR PC_INCLUDEDIR CMAKE_LIBDIR CMAKE_INCLUDEDIR POINTER_SIZE

PC := $(B)/unsalt.pc
CMAKE_FILES := $(B)/unsaltConfig.cmake $(B)/unsaltConfigVersion.cmake
$(PC) $(CMAKE_FILES): $(B)/%: packaging/%.in FORCE
	@mkdir -p $(@D)
	@sed $(foreach w,$(TEMPLATE_WORDS),-e 's|@$(w)@|$($(w))|g') $< > $@

# ---- install and uninstall: both go by these lists

HEADERS := $(sort $(wildcard include/unsalt/*.h))
MAN_PAGES := $(sort $(wildcard docs/man/*.[1-8]))
DOCS := README.md CHANGELOG.md $(sort $(filter-out docs/reference.md,$(wildcard docs/*.md)))
EXAMPLE_FILES := $(sort $(wildcard examples/*.[ch])) examples/README.md
man_section = $(mandir)/man$(patsubst .%,%,$(suffix $(1)))
INSTALLED = $(HEADERS:include/%=$(includedir)/%) $(addprefix $(libdir)/,$(notdir $(STATIC) $(SHARED)) $(SONAME) \
    libunsalt.so pkgconfig/unsalt.pc) $(addprefix $(cmakedir)/,$(notdir $(CMAKE_FILES))) \
    $(foreach page,$(MAN_PAGES),$(call man_section,$(page))/$(notdir $(page))) \
    $(addprefix $(docdir)/,$(notdir $(DOCS))) $(addprefix $(docdir)/examples/,$(notdir $(EXAMPLE_FILES)))
# The linker's cache is the system's: it is left alone by who stages a package or isn't root.
ldconfig = $(if $(DESTDIR),,@[ "$$(id -u)" != 0 ] || ldconfig)

## install: libraries, headers, pages, examples, files for pkg-config and CMake; DESTDIR, PREFIX, libdir, mandir, ...
.PHONY: install
install: $(PC) $(CMAKE_FILES)
	@$(locked) lib
	install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))))
	install -m 644 $(HEADERS) $(DESTDIR)$(includedir)/unsalt
	install -m 644 $(STATIC) $(DESTDIR)$(libdir)
	install -m 755 $(SHARED) $(DESTDIR)$(libdir)
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libunsalt.so
	install -m 644 $(PC) $(DESTDIR)$(libdir)/pkgconfig
	install -m 644 $(CMAKE_FILES) $(DESTDIR)$(cmakedir)
	install -m 644 $(filter-out %.md,$(EXAMPLE_FILES)) $(DESTDIR)$(docdir)/examples
	@set -e; for page in $(DOCS) $(filter %.md,$(EXAMPLE_FILES)); do \
	    to=$(DESTDIR)$(docdir)/$${page#docs/}; \
	    awk -v page="$$page" -v installed='$(DOCS) $(EXAMPLE_FILES)' -f packaging/doc-links.awk "$$page" > "$$to"; \
	    chmod 644 "$$to"; \
	done
	$(foreach page,$(MAN_PAGES),install -m 644 $(page) $(DESTDIR)$(call man_section,$(page)) &&) true
	$(ldconfig)

## uninstall: removes what install put there; with the same variables
.PHONY: uninstall
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	rmdir $(addprefix $(DESTDIR),$(includedir)/unsalt $(cmakedir) $(docdir)/examples $(docdir)) 2> /dev/null || true
	$(ldconfig)

# ---- source tarball

DIST := unsalt-$(VERSION)
## dist: the source as a tarball, the same bytes each time
.PHONY: dist
dist:
	@packaging/dist.sh $(DIST) $(O)/$(DIST).tar.gz
	@echo $(O)/$(DIST).tar.gz

# ---- Debian packages

## deb: Debian packages in build/deb, made from the tarball, looked at by lintian
.PHONY: deb
deb: deps-deb dist
	@packaging/deb.sh $(O)/$(DIST).tar.gz $(O)/deb

## check-deb: the packages build, and a program builds from them
.PHONY: check-deb
check-deb: deps-deb
	@O='$(abspath $(O))' tests/harness/run-tests.sh -n deb -t 300 -l $(B)/logs/deb tests/harness/deb.sh

# ---- the record of the binary interface

## abi: compares the library with the recorded ABI, abi/libunsalt.abi
## abi-update: records the ABI of the library as it is
.PHONY: abi abi-update
abi abi-update: deps-test
	@$(locked) lib
	@UNSALT_BUILD='$(abspath $(B))' tests/api/abi.sh $(if $(filter abi-update,$@),write)

# ---- documentation

## docs: the reference of the headers in build/docs/html; the generated parts of README and manual pages are up to date
.PHONY: docs
docs: deps-docs
	@$(locked) lib
	@UNSALT_BUILD='$(abspath $(B))' tests/harness/run-tests.sh -n docs -l $(B)/logs/docs \
	    $(patsubst %,tests/api/%.sh,reference docs man)
	@echo 'reference: $(O)/docs/html/index.html'

## generated: writes what is made from headers and tables: map, README, manual page, list of metrics
.PHONY: generated
generated: map
	@$(locked) lib
	@UNSALT_BUILD='$(abspath $(B))' tests/api/docs.sh write
	@UNSALT_BUILD='$(abspath $(B))' tests/api/man.sh write
	@UNSALT_BUILD='$(abspath $(B))' tests/api/prometheus.sh write
