# fish completion for insist. Commands and options are asked of the program itself, and names of the daemon that it
# would talk to, so this need not follow their changes.

function __insist_commands
    insist help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { name = $1; sub(/^ *[^ ]+ +/, ""); print name "\t" $0 }'
end

function __insist_command
    for word in (commandline -opc)[2..-1]
        if contains -- $word (__insist_commands | string replace -r '\t.*' '')
            echo $word
            return 0
        end
    end
    return 1
end

function __insist_is # COMMAND: whether that is the one
    set -l command (__insist_command)
    and test $command = $argv[1]
end

function __insist_options
    begin
        insist help 2>/dev/null
        set -l command (__insist_command)
        and insist help $command 2>/dev/null
    end | string match -r -- '^ +(?:-[a-zA-Z], )?--[a-z-]+' | string match -r -- '--[a-z-]+' | sort -u
end

function __insist_presets
    insist presets 2>/dev/null | string replace -r '\s.*' ''
end

function __insist_names # MEMBER COMMAND...: the values of a member that the command's answer has
    insist $argv[2..-1] -o json 2>/dev/null | string match -ar -- '"'$argv[1]'":"[^"\\\\]+"' | string replace -r '.*:"(.*)"' '$1' | sort -u
end

function __insist_at # COMMAND NUMBER: whether the word to complete is that one behind the command
    set -l command (__insist_command)
    or return 1
    test $command = $argv[1]
    and test (count (string match -v -- '-*' (commandline -opc)[2..-1])) -eq $argv[2]
end

complete -c insist -f
complete -c insist -n 'not __insist_command' -a '(__insist_commands)'
complete -c insist -n '__insist_is help' -a '(__insist_commands)'
complete -c insist -n '__insist_is presets' -a '(__insist_presets)'
complete -c insist -n 'string match -q -- "-*" (commandline -ct)' -a '(__insist_options)'
complete -c insist -l policy -s p -x -a '(__insist_presets)'
complete -c insist -l config -s c -r -F
complete -c insist -l compare -r -F
complete -c insist -l html -r -F
complete -c insist -l output -s o -x -a 'table json'
complete -c insist -l priority -x -a 'critical high normal'
complete -c insist -l severity -x -a 'critical warning info'
complete -c insist -l state -x -n '__insist_is alerts' -a 'standing cleared all'
complete -c insist -l state -x -n 'not __insist_is alerts' -a 'pending running waiting completed dead cancelled'
complete -c insist -l scope -x -a 'enqueue read work operate admin'
complete -c insist -l by -x -a 'code tenant destination fingerprint'
complete -c insist -l destination -s d -x -a '(__insist_names name dest list)'
complete -c insist -l tenant -s t -x -a '(__insist_names tenant tenants --all)'
complete -c insist -l payload -r -F
complete -c insist -l out -r -F
complete -c insist -l archive -r -F
complete -c insist -n '__insist_at alerts 1' -a 'list ack'
complete -c insist -n '__insist_at dead 1' -a 'list summary export redrive purge redrives cancel undo'
complete -c insist -n '__insist_at dest 1' -a 'list show pause resume contingency'
complete -c insist -n '__insist_at report 1' -a 'daily weekly'
complete -c insist -n '__insist_at incidents 1' -a 'list show report note'
complete -c insist -n '__insist_at errors 1' -a 'list forget'
complete -c insist -n '__insist_at audit 1' -a 'verify export'
complete -c insist -n '__insist_at subject 1' -a 'history erase erasures'
complete -c insist -n '__insist_at nodes 1' -a 'list drain'
complete -c insist -n '__insist_at sources 1' -a 'list show'
complete -c insist -n '__insist_at tenants 1' -a list
complete -c insist -n '__insist_at dest 2; or __insist_at add 1' -a '(__insist_names name dest list)'
complete -c insist -n '__insist_at job 1; or __insist_at why 1; or __insist_at retry 1; or __insist_at resend 1; or __insist_at cancel 1; or __insist_at prioritize 1' -a '(__insist_names id jobs)'
complete -c insist -n '__insist_at incidents 2' -a '(__insist_names id incidents)'
complete -c insist -n '__insist_at nodes 2' -a '(__insist_names name nodes)'
complete -c insist -n '__insist_at sources 2' -a '(__insist_names name sources)'
complete -c insist -n '__insist_at prioritize 2' -a 'critical high normal'
complete -c insist -n '__insist_at add 2; or __insist_at check 1; or __insist_at backup 1' -F
