// decide.cpp - a policy as a C++ object: freed by itself, failures as exceptions.
//
//     c++ -std=c++17 -o decide decide.cpp $(pkg-config --cflags --libs insist)
//     ./decide tiss CLM-2025-001 'TIMEOUT - Connection timeout after 30s' 1
#include <insist.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

class Policy {
public:
    explicit Policy(const char *preset)
    {
        char message[512];
        insist_policy *loaded = nullptr;
        if (insist_policy_from_preset(preset, &loaded, message, sizeof message) != INSIST_OK)
            throw std::invalid_argument(message);
        policy.reset(loaded);
    }

    insist_decision decide(std::string_view id, std::string_view error, std::int64_t retry_count) const
    {
        using namespace std::chrono;
        insist_question question{};
        question.size = sizeof question;
        question.id = id.data();
        question.id_len = id.size();
        question.error = error.data();
        question.error_len = error.size();
        question.retry_count = retry_count;
        question.now_ms = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
        insist_decision decision{};
        decision.size = sizeof decision;
        if (int status = insist_decide(policy.get(), &question, &decision); status != INSIST_OK)
            throw std::invalid_argument(insist_status_text(status));
        return decision;
    }

private:
    struct Free {
        void operator()(insist_policy *policy) const { insist_policy_free(policy); }
    };
    std::unique_ptr<insist_policy, Free> policy;
};

int main(int argc, char **argv)
{
    if (argc != 5) {
        std::cerr << "usage: " << argv[0] << " PRESET ID ERROR RETRY_COUNT\n";
        return 2;
    }
    try {
        insist_decision decision = Policy(argv[1]).decide(argv[2], argv[3], std::stoll(argv[4]));
        std::cout << insist_action_name(decision.action);
        if (decision.should_retry)
            std::cout << " in " << decision.delay_ms << " ms, retry " << decision.retry_count << " of " << decision.retries_max << "\n";
        else
            std::cout << ": " << insist_outcome_name(decision.outcome) << "\n";
    } catch (const std::exception &problem) {
        std::cerr << problem.what() << "\n";
        return 2;
    }
}
