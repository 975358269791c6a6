# insist: one Makefile. `make run` and `make test` set up a fresh Debian 12 by themselves.
#
#   make          the program, the libraries          make test     everything, as CI runs it
#   make run      build and start                     make check    the fast tests only
#   make bench    measurements                        make fuzz     libFuzzer, FUZZ_SECONDS each
#   make coverage branches of src/core                make install  PREFIX=/usr/local DESTDIR=
#   SANITIZE=address,undefined or thread, CC=clang: each has its own build folder.

VERSION := $(shell cat VERSION)
PREFIX ?= /usr/local
SANITIZE ?=
COVERAGE ?=
comma := ,

variant := $(if $(filter-out cc gcc,$(CC)),-$(notdir $(CC)))$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(COVERAGE),-coverage)
B := build$(if $(variant),/variant$(variant))

packages := libevent libevent_pthreads libevent_openssl libcurl jansson libpcre2-8 yaml-0.1 libxml-2.0 sqlite3 openssl
# Asked of pkg-config once, when the folder is made: it costs more than a compilation.
-include $(B)/packages.mk

# Exceptions to the warnings: none.
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef \
            -Wcast-qual -Wwrite-strings -Wvla -Werror=implicit-function-declaration $(if $(CI)$(WERROR),-Werror)
OPTIMIZE ?= -O2 -g
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -fPIC -fvisibility=hidden -fno-strict-aliasing $(WARNINGS) $(OPTIMIZE) -Iinclude -Isrc -I$(B)/gen \
             -DINSIST_VERSION='"$(VERSION)"' $(package_cflags) $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all) \
             $(if $(COVERAGE),--coverage -O0) $(CFLAGS)
LDFLAGS_ALL = $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage) $(LDFLAGS)
LDLIBS_ALL = $(package_libs) -lpthread -lm $(LDLIBS)

# The library is what decides; the program is the library and everything around it.
library_folders := base core config lib
library_sources := $(foreach folder,$(library_folders),$(wildcard src/$(folder)/*.c))
program_sources := $(filter-out $(library_sources) src/main.c,$(wildcard src/*/*.c))
library_objects := $(library_sources:src/%.c=$(B)/obj/%.o) $(B)/obj/gen/presets.o
program_objects := $(program_sources:src/%.c=$(B)/obj/%.o)
unit_programs := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
test_support := $(patsubst tests/support/%.c,$(B)/obj/tests/support/%.o,$(wildcard tests/support/*.c))

.PHONY: all
all: $(B)/insist $(B)/libinsist.a $(B)/libinsist.so

$(B)/packages.mk: Makefile VERSION
	@tools/deps build
	@mkdir -p $(@D)
	@{ echo "package_cflags := $$(pkg-config --cflags $(packages))"; echo "package_libs := $$(pkg-config --libs $(packages))"; } > $@

$(B)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(B)/gen/presets.c: $(wildcard presets/*.yaml) tools/embed
	@mkdir -p $(@D)
	tools/embed presets $(wildcard presets/*.yaml) > $@.part && mv $@.part $@

$(B)/libinsist.a: $(library_objects)
	rm -f $@ && ar rcs $@ $^

$(B)/libinsist.so: $(library_objects)
	$(CC) -shared -Wl,-soname,libinsist.so.0 $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/insist: $(B)/obj/main.o $(program_objects) $(B)/libinsist.a
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

$(B)/obj/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Itests -MMD -MP -c $< -o $@

$(B)/tests/%: $(B)/obj/tests/unit/%.o $(test_support) $(program_objects) $(B)/libinsist.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -o $@ $^ -lcmocka $(LDLIBS_ALL)

.PHONY: clean
clean:
	rm -rf build

-include $(library_objects:.o=.d) $(program_objects:.o=.d) $(B)/obj/main.d $(patsubst $(B)/tests/%,$(B)/obj/tests/unit/%.d,$(unit_programs)) $(test_support:.o=.d)
