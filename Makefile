# insist: one Makefile. `make help` lists the targets; `make run` and `make test` set up a fresh Debian 12 by themselves.
#
# SANITIZE=address,undefined, SANITIZE=thread, COVERAGE=1 and CC=clang each have a build folder of their own, so that
# going back and forth costs nothing. V=1 shows the commands. WERROR=1 (or CI set) makes a warning an error.

VERSION := $(shell cat VERSION)
SOVERSION := 0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SANITIZE ?=
COVERAGE ?=
COVERAGE_BRANCHES_MIN ?= 95
FUZZ_SECONDS ?= 60
WORLDS_SECONDS ?= 30
NODES_FAULTS ?= 100000
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
comma := ,

variant := $(if $(filter-out cc gcc,$(CC)),-$(notdir $(CC)))$(if $(SANITIZE),-$(subst $(comma),-,$(SANITIZE)))$(if $(COVERAGE),-coverage)
B := build$(if $(variant),/variant$(variant))
RESULTS ?= $(B)/results

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:

# One short line a step; `make -s` says nothing, V=1 says all.
quiet := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
ifeq ($(V),1)
say = @:
run :=
else
say = @$(if $(quiet),:,printf '  %-7s %s\n')
run := @
endif

# ---- Packages ----

# What the library needs, and what the daemon around it needs besides.
library_packages := jansson libpcre2-8 yaml-0.1
packages := $(library_packages) libevent libevent_pthreads libevent_openssl libcurl libxml-2.0 sqlite3 libpq openssl hiredis librabbitmq

# pkg-config is asked once and the answer kept: it costs more than a compilation.
without_packages := clean help format wrap
ifneq ($(filter-out $(without_packages),$(or $(MAKECMDGOALS),all)),)
-include build/packages.mk
endif

build/packages.mk: Makefile tools/deps
	@tools/deps build
	@mkdir -p $(@D)
	@{ echo "package_cflags := $$(pkg-config --cflags $(packages))" && \
	   echo "package_libs := $$(pkg-config --libs $(packages))" && \
	   echo "library_libs := $$(pkg-config --libs $(library_packages))"; } > $@.part && mv $@.part $@

# ---- Flags ----

# Exceptions to the warnings: none.
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef \
            -Wcast-qual -Wwrite-strings -Wvla -Werror=implicit-function-declaration $(if $(CI)$(WERROR),-Werror)
instrumented := $(SANITIZE)$(COVERAGE)
# With an instrument the compiler takes most of the time: half of that with less to optimise. What it then knows too little of a number
# to warn of truly is left to the plain build.
OPTIMIZE ?= $(if $(instrumented),-O1 -g1 -Wno-format-truncation -Wno-maybe-uninitialized,-O2 -g)
# Jumps and returns that the processor checks; each has its own flag. tests/tools/test_hardening.sh holds all of it.
machine := $(shell $(CC) -dumpmachine 2>/dev/null)
machine_hardening := $(if $(filter x86_64-% i%86-%,$(machine)),-fcf-protection=full -fstack-clash-protection) \
                     $(if $(filter aarch64-%,$(machine)),-mbranch-protection=standard)
HARDENING := -fstack-protector-strong $(machine_hardening) $(if $(instrumented),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -fPIC -fvisibility=hidden -fno-strict-aliasing $(WARNINGS) $(OPTIMIZE) $(HARDENING) \
             -Iinclude -Isrc -I$(B)/gen -DINSIST_VERSION='"$(VERSION)"' $(package_cflags) \
             $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all) \
             $(if $(findstring thread,$(SANITIZE)),-DTHREAD_SANITIZER) \
             $(if $(COVERAGE),--coverage -fprofile-update=atomic -O0) $(CFLAGS)
LDFLAGS_ALL = -Wl,-z,relro,-z,now,--as-needed $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(if $(COVERAGE),--coverage) $(LDFLAGS)
LDLIBS_ALL = $(package_libs) -lpthread -lm $(LDLIBS)

# Everything compiled depends on this file, which changes only when a flag does.
flags = $(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(LDLIBS_ALL)
$(B)/flags: always
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(flags))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(flags))' > $@
.PHONY: always
always:

# ---- What is built of what ----

# The library is what decides; the program is the library and everything around it.
library_folders := base core config lib
library_sources := $(foreach folder,$(library_folders),$(wildcard src/$(folder)/*.c src/$(folder)/*/*.c))
program_sources := $(filter-out $(library_sources) src/main.c,$(wildcard src/*/*.c src/*/*/*.c))
library_objects := $(library_sources:src/%.c=$(B)/obj/%.o) $(B)/obj/gen/presets.o $(B)/obj/gen/reference.o
page_files := $(filter-out %.c %.h %.md,$(wildcard src/api/page/*))
page_packed := $(page_files:src/api/page/%=$(B)/gen/page/%.gz)
api_files := src/api/openapi.json $(page_files) $(page_packed)
help_pages := $(sort $(wildcard src/cli/help/*.txt))
program_objects := $(program_sources:src/%.c=$(B)/obj/%.o) $(addprefix $(B)/obj/gen/,api.o help.o report.o)
unit_programs := $(patsubst tests/unit/%.c,$(B)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
test_support := $(patsubst tests/support/%.c,$(B)/obj/tests/support/%.o,$(wildcard tests/support/*.c))
world_objects := $(patsubst tests/%.c,$(B)/obj/tests/%.o,$(wildcard tests/world/*.c))
node_objects := $(patsubst tests/%.c,$(B)/obj/tests/%.o,$(wildcard tests/nodes/*.c))
fuzz_names := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
presets := $(sort $(wildcard presets/*.yaml))
# LEAVE has the names of those that are not run this time.
script_tests = $(filter-out $(LEAVE:%=tests/$(1)/%),$(sort $(shell find tests/$(1) -maxdepth 1 -type f -perm -u+x 2>/dev/null)))

.PHONY: all
all: $(B)/insist $(B)/libinsist.a $(B)/libinsist.so

# What every decision runs through: measured 9 % faster than with -O2 (bench/run decide).
$(B)/obj/base/%.o $(B)/obj/core/%.o: CFLAGS_ALL += $(if $(instrumented),,-O3)

$(B)/obj/%.o: src/%.c $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $<
	$(run)$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(B)/obj/gen/%.o: $(B)/gen/%.c $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $<
	$(run)$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(B)/obj/tests/%.o: tests/%.c $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $<
	$(run)$(CC) $(CFLAGS_ALL) -Itests -MMD -MP -c $< -o $@

# The page's files for browsers that take them packed, which all do.
$(B)/gen/page/%.gz: src/api/page/%
	@mkdir -p $(@D)
	$(run)gzip -9nc $< > $@.part && mv $@.part $@

# Texts that are built in, as tables of files. The names are a prerequisite too: a file that was removed must leave its table.
define embed
$(B)/gen/$(1).list: always
	@mkdir -p $$(@D)
	@echo '$(2)' | cmp -s - $$@ || echo '$(2)' > $$@

$(B)/gen/$(1).c: $(2) $(B)/gen/$(1).list tools/embed
	$$(say) EMBED $(1)
	$$(run)tools/embed $(1) $(2) > $$@.part && mv $$@.part $$@
endef
$(eval $(call embed,presets,$(presets)))
$(eval $(call embed,reference,src/config/reference.md))
$(eval $(call embed,api,$(api_files)))
$(eval $(call embed,help,$(help_pages)))
$(eval $(call embed,report,src/sim/report.html))

# With every symbol, for the program and the unit tests.
$(B)/obj/library.a: $(library_objects)
	@mkdir -p $(@D)
	$(say) AR $@
	$(run)rm -f $@ && ar rcs $@ $(library_objects)

$(B)/obj/program.a: $(program_objects)
	@mkdir -p $(@D)
	$(say) AR $@
	$(run)rm -f $@ && ar rcs $@ $(program_objects)

# For others: one object whose internal names are local, so that a host's own `map_get` cannot meet ours.
$(B)/libinsist.a: $(library_objects)
	@mkdir -p $(@D)
	$(say) AR $@
	$(run)ld -r -o $(B)/obj/insist.o $(library_objects)
	$(run)objcopy --localize-hidden $(B)/obj/insist.o
	$(run)rm -f $@ && ar rcs $@ $(B)/obj/insist.o

$(B)/libinsist.so: $(library_objects)
	$(say) LD $@
	$(run)$(CC) -shared -Wl,-soname,libinsist.so.$(SOVERSION) $(if $(SANITIZE),,-Wl$(comma)-z$(comma)defs) $(LDFLAGS_ALL) -o $@ $^ \
	    $(library_libs) -lpthread -lm $(LDLIBS)
	@ln -sf libinsist.so $@.$(SOVERSION)

$(B)/insist: $(B)/obj/main.o $(program_objects) $(B)/obj/library.a
	$(say) LD $@
	$(run)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

# From archives, so that a test may include a module's .c to reach its inside: the archive's own is then left out.
everything := $(B)/obj/program.a $(B)/obj/library.a
# Some 500 test programs are linked: lld takes a third of the processor that the usual linker takes, gold half. Of the tests' support
# each takes only what it names, from an archive as well: that made them a quarter as large.
test_linker := $(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(comma)--threads=1,$(if $(shell command -v ld.gold),-fuse-ld=gold))
link_test = $(CC) $(LDFLAGS_ALL) $(test_linker) -o $@ $^ -lcmocka $(LDLIBS_ALL)

$(B)/obj/tests/support.a: $(test_support)
	@mkdir -p $(@D)
	$(say) AR $@
	$(run)rm -f $@ && ar rcs $@ $(test_support)

# The core's own tests: named after a module of it, or knowing nothing above it. They need no more than the library, and neither does
# measuring what they cover.
above_core := ^\#include "(config|lib|store|transport|node|engine|sim|api|daemon|cli)/|^\#include "support/(stage|engine_fixture)
core_programs := $(filter $(patsubst %.c,$(B)/tests/test_%,$(notdir $(wildcard src/core/*/*.c))) \
    $(patsubst tests/unit/%.c,$(B)/tests/%,$(shell grep -LE '$(above_core)' $$(grep -l '^.include "core/' tests/unit/test_*.c))),$(unit_programs))

define unit_program
	@mkdir -p $(@D)
	$(say) LD $@
	$(run)$(link_test)
endef
$(core_programs): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/support.a $(B)/obj/library.a
	$(unit_program)

$(filter-out $(core_programs),$(unit_programs)): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/support.a $(everything)
	$(unit_program)

# Plays simulated worlds against the invariants: tests/world.
$(B)/worlds: $(world_objects) $(B)/obj/tests/support.a $(everything)
	$(say) LD $@
	$(run)$(link_test)

# The same with three nodes on one store: tests/nodes.
$(B)/nodes: $(node_objects) $(B)/obj/tests/support.a $(everything)
	$(say) LD $@
	$(run)$(link_test)

-include $(library_objects:.o=.d) $(program_objects:.o=.d) $(B)/obj/main.d $(test_support:.o=.d) $(world_objects:.o=.d) $(node_objects:.o=.d) \
         $(patsubst $(B)/tests/%,$(B)/obj/tests/unit/%.d,$(unit_programs)) $(fuzz_names:%=$(B)/obj/tests/fuzz/fuzz_%.d)

.PHONY: run
run: all
	@INSIST=$(B)/insist tools/run

# ---- Tests ----
#
# A stage runs its programs through tools/runtests, which adds their counts to $(RESULTS) and goes on after a failure.
# A stage that cannot even be built is counted as one failure. The last step prints the sum and sets the exit code.

runtests = INSIST=$(abspath $(B)/insist) INSIST_BUILD=$(abspath $(B)) $(fixed_addresses) tools/runtests --results $(RESULTS) --jobs $(JOBS)
# The sanitizers' shadow memory does not fit every kernel's random layout.
fixed_addresses = $(if $(SANITIZE),$(shell setarch -R true 2>/dev/null && echo setarch -R))
parallel = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS)) --output-sync=target
define stages
	@rm -f $(RESULTS)
	@mkdir -p $(dir $(RESULTS))
	+@$(MAKE) -k --no-print-directory $(parallel) RESULTS=$(RESULTS) $(2) $(1) || tools/runtests --results $(RESULTS) --broken stages
	@tools/runtests --sum $(RESULTS)
endef

.PHONY: test test-more check
# What does not fit in 25 minutes: the same programs once more, each under the tool that has not seen it.
test-more:
	@tools/deps test
	$(call stages,stage-memcheck stage-address-more stage-thread-more stage-clang-builds)

# One stage a kind of build: two would build the same files at once.
stage-address-more:
	@$(MAKE) -s SANITIZE=address,undefined stage-long stage-crash

stage-thread-more:
	@$(MAKE) -s SANITIZE=thread CRASH_ALL=1 stage-crash stage-cases

# Everything is built before anything is run: a stage that waits for processes, of which there are many, would otherwise hold the
# place of a compiler. What cannot be built is tried again, told and counted by its stage.
test:
	@tools/deps test
	+@$(MAKE) -k -s --no-print-directory $(parallel) programs-of-all || :
	$(call stages,$(test_stages:%=run-%))

# What takes long in one process, and what waits for processes, servers and browsers, begins first and goes beside what computes;
# the many short programs are last, so that no processor waits at the end.
test_stages := worlds-found sanitize crash thread browser install clients worlds nodes clang coverage house cases unit

# In a make of its own each: a stage that has prerequisites would begin after all that have none.
run-%:
	@$(MAKE) -s stage-$*

# What `make check` leaves to `make test`, so that it can be done in 90 s on two cores: each takes five seconds of a processor or ten by the
# clock, and most try every place of a fault, cut or row where others try some.
check_leaves := test_store_contract_postgres test_store_faults test_store_power test_store_log test_store_migrate test_store_move \
    test_engine_concurrency test_engine_looks test_engine_faults test_engine_audit test_lane_memory \
    test_runtests.py test_docs.sh events.sh newcomer.sh demo.sh migrate.py

# Half of them wait for most of their time: more are run at once than there are processors.
check:
	@tools/deps check
	$(call stages,stage-unit stage-house stage-cases stage-worlds stage-nodes,JOBS=$$(($(JOBS) + 2)) WORLDS_SECONDS=5 NODES_FAULTS=10000 LEAVE="$(check_leaves)")

.PHONY: stage-clang-builds stage-address-more stage-thread-more stage-unit stage-house stage-cases stage-browser stage-clients stage-install stage-crash stage-worlds stage-worlds-found stage-nodes stage-sanitize stage-thread stage-clang stage-replay stage-coverage stage-memcheck
# What src/core does, the stores and the engine in virtual time have one thread: the thread sanitizer has nothing to see there, and makes
# them slow. Threads are the writer, the API, the searcher and the test servers.
with_threads = $(patsubst tests/unit/%.c,$(B)/tests/%,$(shell grep -lE 'pthread|"(api|transport|daemon|cli)/|node/|support/(api_|line_server|http_|smtp_|mail_)' tests/unit/test_*.c))
# Long ones in virtual time or with every place of a fault, whose code other programs and the worlds run with this sanitizer as well.
long_programs := $(addprefix $(B)/tests/,test_store_faults test_store_migrate test_engine_concurrency test_engine_looks test_store_log test_engine_audit)
unit_left = $(LEAVE:%=$(B)/tests/%) $(if $(SANITIZE),$(long_programs))
unit_run = $(if $(findstring thread,$(SANITIZE)),$(with_threads),$(filter-out $(unit_left),$(unit_programs)))
stage-unit: $(unit_run)
	@$(runtests) --stage unit$(variant) $(if $(instrumented),--limit 400) $(unit_run)

.PHONY: stage-long
stage-long: $(long_programs)
	@$(runtests) --stage long$(variant) --limit 1200 $(long_programs)

# The rules of the house, and the tools that keep them.
stage-house: $(B)/insist $(B)/libinsist.so
	@$(runtests) --stage house tools/tidy $(call script_tests,tools) $(call script_tests,docs)

# One of the cases builds the examples against the plain library.
stage-cases: $(B)/insist $(if $(variant),,$(B)/libinsist.so)
	@$(runtests) --stage cases$(variant) $(call script_tests,cases)

# The page in Chromium, with the daemon behind it.
stage-browser: $(B)/insist
	@$(runtests) --stage browser --limit 300 $(call script_tests,browser)

# What others have written, as receivers.
stage-clients: $(B)/insist
	@$(runtests) --stage clients $(call script_tests,clients)

stage-install: all
	@$(runtests) --stage install $(call script_tests,install)

# The daemon as a process: killed under load, stopped, reloaded, on a full disk. Fewer kills where each is slow, and of three nodes
# only what nodes.py and together.py do with them; CRASH_ALL=1 runs all.
crash_run = $(filter-out $(if $(CRASH_ALL),,$(if $(findstring thread,$(SANITIZE)),$(addprefix tests/crash/,steward.py redrive_nodes.py example.py))),$(call script_tests,crash))
# On a disk, where syncs are what they will be.
stage-crash: $(B)/insist
	@$(if $(SANITIZE),CRASH_ROUNDS=20) TMPDIR=$${TMPDIR:-/tmp} $(runtests) --stage crash$(variant) --limit 300 $(crash_run)

# The engine in simulated worlds, each from its seed; then with things broken on purpose, which must be found.
stage-worlds: $(B)/worlds
	@$(runtests) --stage worlds$(variant) --limit 400 --one "worlds of $(WORLDS_SECONDS) s" -- $(B)/worlds --seconds $(WORLDS_SECONDS) --figures $(B)/worlds.txt
	@cat $(B)/worlds.txt

stage-worlds-found: $(B)/worlds
	@$(runtests) --stage worlds$(variant) --limit 400 --one "broken worlds are found" -- $(B)/worlds --self-test

# The same with three nodes.
stage-nodes: $(B)/nodes
	@$(runtests) --stage nodes$(variant) --limit 400 --one "worlds of three nodes, $(NODES_FAULTS) faults" -- $(B)/nodes --faults $(NODES_FAULTS)
	@$(runtests) --stage nodes$(variant) --limit 400 --one "broken nodes are found" -- $(B)/nodes --self-test

stage-sanitize:
	@$(MAKE) -s SANITIZE=address,undefined WORLDS_SECONDS=15 NODES_FAULTS=5000 stage-unit stage-cases stage-worlds stage-nodes stage-replay

stage-thread:
	@$(MAKE) -s SANITIZE=thread stage-unit stage-crash

# Its warnings are all given before any code is made. `make test-more` builds with it.
sources := $(wildcard src/*.c src/*/*.c src/*/*/*.c tests/*/*.c bench/*.c)
stage-clang:
	@$(runtests) --stage clang --one "clang reads $(words $(sources)) files without a warning" -- $(MAKE) -s CC=clang WERROR=1 clang-reads

stage-clang-builds:
	@$(runtests) --stage clang --one "clang builds without a warning" -- $(MAKE) -s CC=clang WERROR=1 all build/variant-clang/worlds build/variant-clang/nodes

# Many in one process, for which -Xclang names all but an empty first: a clang that starts takes longer than one that reads a file.
.PHONY: clang-reads
clang-reads:
	@printf -- '-Xclang %s\n' $(sources) | xargs -n 128 -P $(JOBS) $(CC) $(CFLAGS_ALL) -Itests -fsyntax-only -x c /dev/null

# Every input a fuzzer has ever found worth keeping.
stage-replay: $(fuzz_names:%=$(B)/fuzz/replay_%)
	@for name in $(fuzz_names); do \
	    $(runtests) --stage replay --one "replay $$name" -- $(B)/fuzz/replay_$$name tests/fuzz/corpus/$$name || exit; \
	done

stage-coverage:
	@$(MAKE) -s COVERAGE=1 coverage-core
	@$(runtests) --stage coverage --one "branches of src/core at least $(COVERAGE_BRANCHES_MIN)%" -- \
	    $(core_coverage)

memcheck := valgrind --quiet --suppressions=tests/valgrind.supp --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --error-exitcode=99
stage-memcheck: $(core_programs)
	@$(runtests) --stage memcheck --limit 300 --wrap "$(memcheck)" $(core_programs)

# What takes too long for `make test`: tests/trials.
.PHONY: trials
trials: $(B)/insist $(B)/worlds $(B)/nodes $(B)/tests/test_trail $(B)/tests/test_store_contract $(B)/tests/test_store_contract_postgres $(B)/tests/test_engine_keys
	@tools/deps test
	@INSIST=$(abspath $(B)/insist) INSIST_BUILD=$(abspath $(B)) tests/trials/run

.PHONY: programs programs-of-all
programs-of-all: all programs
	@$(MAKE) -s SANITIZE=address,undefined programs
	@$(MAKE) -s SANITIZE=thread programs
	@$(MAKE) -s COVERAGE=1 $(core_programs:$(B)/%=build/variant-coverage/%)

# What the stages of a variant run.
programs: $(B)/insist $(unit_run) $(if $(findstring thread,$(SANITIZE)),,$(B)/worlds $(B)/nodes) \
    $(if $(findstring address,$(SANITIZE)),$(fuzz_names:%=$(B)/fuzz/replay_%))

.PHONY: unit-programs
unit-programs: $(unit_programs) $(B)/worlds $(B)/nodes

# ---- Coverage ----

# An assertion's failing side is not a branch that a test can take.
gcovr = gcovr --root . --exclude-branches-by-pattern '.*\bassert\(.*'
core_coverage = $(gcovr) --add-tracefile build/coverage/all.json --filter src/core/ --txt --branches --fail-under-branch $(COVERAGE_BRANCHES_MIN)

.PHONY: coverage coverage-measure coverage-core
coverage:
	@tools/deps test
	@$(MAKE) -s COVERAGE=1 coverage-measure
	@mkdir -p build/coverage/html
	@$(gcovr) --add-tracefile build/coverage/all.json --filter src/ --branches --txt build/coverage/report.txt \
	    --html-details build/coverage/html/index.html
	@cat build/coverage/report.txt
	@echo "The same line by line: build/coverage/html/index.html"
	@$(core_coverage) > build/coverage/core.txt

coverage-measure: covered = $(unit_programs)
coverage-measure: $(unit_programs)
	$(measure_coverage)

# The core is held to its own tests: what only a whole engine reaches has not been looked at.
coverage-core: covered = $(core_programs)
coverage-core: $(core_programs)
	$(measure_coverage)

define measure_coverage
	@find $(B) -name '*.gcda' -delete
	@mkdir -p build/coverage
	@$(runtests) --stage coverage --limit 400 $(covered)
	@$(gcovr) --filter src/ --json build/coverage/all.json $(B)/obj
endef

# ---- Fuzzing ----

.PHONY: fuzz fuzz-programs
fuzz:
	@tools/deps test
	@$(MAKE) -s CC=clang SANITIZE=fuzzer-no-link,address,undefined fuzz-programs
	@for name in $(fuzz_names); do \
	    mkdir -p build/fuzz/$$name && echo "  FUZZ    $$name for $(FUZZ_SECONDS) s" && \
	    build/variant-clang-fuzzer-no-link-address-undefined/fuzz/fuzz_$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
	        -print_final_stats=0 -verbosity=1 -artifact_prefix=build/fuzz/$$name- build/fuzz/$$name tests/fuzz/corpus/$$name || exit 1; \
	done

fuzz-programs: $(fuzz_names:%=$(B)/fuzz/fuzz_%)

$(B)/fuzz/fuzz_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/support.a $(everything)
	@mkdir -p $(@D)
	$(say) LD $@
	$(run)$(CC) $(LDFLAGS_ALL) $(if $(findstring fuzzer,$(SANITIZE)),-fsanitize=fuzzer) -o $@ $^ -lcmocka $(LDLIBS_ALL)

$(B)/fuzz/replay_%: $(B)/obj/tests/fuzz/fuzz_%.o $(B)/obj/tests/fuzz/replay.o $(B)/obj/tests/support.a $(everything)
	@mkdir -p $(@D)
	$(say) LD $@
	$(run)$(link_test)

# ---- Measurements, style ----

.PHONY: bench
bench: all
	@if [ -x bench/run ]; then INSIST=$(B)/insist INSIST_BUILD=$(B) bench/run; else echo "bench: there is no bench/run" >&2; exit 1; fi

c_files = $(shell find src include tests bench -name node_modules -prune -o -name '*.[ch]' -print 2>/dev/null)
.PHONY: format wrap lint
format:
	clang-format -i $(c_files)

# Only the lines that tidy finds too long, from the last to the first so that their numbers hold.
wrap:
	@tools/tidy | sed -n 's/^# \(.*\.[ch]\):\([0-9]*\): [0-9]* columns.*/\1 \2/p' | sort -k1,1 -k2,2nr | \
	    while read -r file line; do clang-format -i --lines=$$line:$$line "$$file"; done

lint: $(B)/gen/presets.c
	@tools/tidy
	clang-tidy --quiet $(filter src/%.c,$(c_files)) -- -std=c17 -D_GNU_SOURCE -Iinclude -Isrc -DINSIST_VERSION='"$(VERSION)"' $(package_cflags)
	@if command -v cppcheck >/dev/null; then set -x; \
	    cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -Isrc -Iinclude src; fi
	@if command -v shellcheck >/dev/null; then set -x; \
	    shellcheck $$(grep -lE '^#!.*\b(sh|bash)$$' tools/* .ci/* tests/*/* 2>/dev/null) completions/insist.bash; fi

# ---- Packages for Debian ----

# build/deb/*.deb, from what git knows; objects that are built already are taken along.
.PHONY: deb
deb: all
	@tools/deps deb
	$(say) DEB build/deb
	$(run)rm -rf build/deb && mkdir -p build/deb/insist/build
	$(run)git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -a -t build/deb/insist
	$(run)cp -a build/obj build/gen build/flags build/packages.mk build/libinsist.* build/insist build/deb/insist/build/
	$(run)cd build/deb/insist && dpkg-buildpackage --build=binary --no-sign --no-pre-clean -Zxz $(if $(quiet),>/dev/null 2>../log || { cat ../log; exit 1; })
	$(run)rm -rf build/deb/insist && ls build/deb/*.deb

# ---- Installation ----

public_headers := $(wildcard include/*.h)
to := $(DESTDIR)$(PREFIX)
to_lib := $(DESTDIR)$(LIBDIR)
installed = $(to)/bin/insist $(public_headers:include/%=$(to)/include/%) $(to_lib)/libinsist.a $(to_lib)/libinsist.so.$(VERSION) \
            $(to_lib)/libinsist.so.$(SOVERSION) $(to_lib)/libinsist.so $(to_lib)/pkgconfig/insist.pc \
            $(to)/share/man/man1/insist.1 $(to)/share/bash-completion/completions/insist \
            $(to)/share/zsh/site-functions/_insist $(to)/share/fish/vendor_completions.d/insist.fish

.PHONY: install uninstall
install: all
	$(say) INSTALL $(to)
	$(run)install -D -m 755 $(B)/insist $(to)/bin/insist
	$(if $(public_headers),$(run)install -D -m 644 -t $(to)/include $(public_headers))
	$(run)install -D -m 644 $(B)/libinsist.a $(to_lib)/libinsist.a
	$(run)install -D -m 755 $(B)/libinsist.so $(to_lib)/libinsist.so.$(VERSION)
	$(run)ln -sf libinsist.so.$(VERSION) $(to_lib)/libinsist.so.$(SOVERSION)
	$(run)ln -sf libinsist.so.$(SOVERSION) $(to_lib)/libinsist.so
	$(run)mkdir -p $(to_lib)/pkgconfig
	$(run)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@REQUIRES@|$(library_packages)|' \
	    insist.pc.in > $(to_lib)/pkgconfig/insist.pc
	$(run)install -D -m 644 docs/insist.1 $(to)/share/man/man1/insist.1
	$(run)install -D -m 644 -t $(to)/share/insist/presets $(presets)
	$(run)install -D -m 644 completions/insist.bash $(to)/share/bash-completion/completions/insist
	$(run)install -D -m 644 completions/insist.zsh $(to)/share/zsh/site-functions/_insist
	$(run)install -D -m 644 completions/insist.fish $(to)/share/fish/vendor_completions.d/insist.fish

uninstall:
	$(say) REMOVE $(to)
	$(run)rm -f $(installed)
	$(run)rm -rf $(to)/share/insist

.PHONY: clean help
clean:
	rm -rf build

help:
	@echo "make                 the program and the libraries, in build/"
	@echo "make run             install what is missing, build, and start the daemon"
	@echo "make test            every test, as CI runs it; ends with 'N passed, M failed'"
	@echo "make check           the fast tests: unit, cases, rules of the house"
	@echo "make coverage        branches of the unit tests, build/coverage"
	@echo "make fuzz            libFuzzer, FUZZ_SECONDS=$(FUZZ_SECONDS) for each target"
	@echo "make build/worlds    simulated worlds from their seeds: see tests/world/README.md"
	@echo "make test-more       memcheck, crashes and long tests with the address sanitizer, crashes and cases with the thread sanitizer, a build with clang"
	@echo "make trials          long tests, resumable by seed: see tests/trials/README.md"
	@echo "make bench           measurements"
	@echo "make format, wrap    clang-format on everything, or on lines that are too long"
	@echo "make lint            clang-tidy, cppcheck, shellcheck, tools/tidy"
	@echo "make deb             packages for Debian: build/deb/*.deb"
	@echo "make install         PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR="
	@echo "make uninstall, clean"
	@echo "Options: SANITIZE=address,undefined or thread, CC=clang, WERROR=1, V=1, JOBS=$(JOBS), CFLAGS, LDFLAGS"
